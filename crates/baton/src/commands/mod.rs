//! One module per command.

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod compare;
mod curves;
pub mod demo;
pub mod explore;
pub mod generate;
pub mod keys;
pub mod list;
#[cfg(live)]
pub mod live;
pub mod load;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod shell;
pub mod sweep;
pub mod trace;

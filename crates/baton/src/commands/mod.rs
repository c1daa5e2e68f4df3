//! One module per command.

pub mod calibrate;
pub mod demo;
pub mod generate;
pub mod live;
pub mod reproduce;
pub mod run;
pub mod shell;
pub mod trace;

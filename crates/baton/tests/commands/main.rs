//! Runs the program with the commands that users give.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod beside;
mod calibrate;
mod demo;
mod found;
#[cfg(unix)]
mod interrupts;
mod load;
mod locality;
mod logs;
mod microbench;
mod report;
mod reproduce_dcache;
mod run;
mod sweep;
mod widths;

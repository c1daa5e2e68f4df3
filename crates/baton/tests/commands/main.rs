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

mod dialogues {
    use crate::common::play::Player;

    baton_testkit::dialogues!(Player, "commands/dialogues": bad_input, calibrate, found, load, locality, logs, reproduce, run, sweep, widths);

    #[cfg(live)]
    baton_testkit::dialogues!(Player, "commands/dialogues": adapter, interfaces);
}

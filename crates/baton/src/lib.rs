//! The command line: reads what the user wants, runs it, and says what came out. A library, so that tests and fuzzers
//! reach its parts; the program is [`run`].
//!
//! Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted.

mod cli;
mod commands;
pub mod config;
mod failure;
mod output;
mod runner;
mod summary;
mod tables;

use clap::Parser;
use cli::{Cli, Command};
pub use failure::Failure;
use runner::Interrupt;
use std::process::ExitCode;

/// Does what the process's arguments say.
pub fn run() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::tell(&format!("{failure}\n"));
            failure.exit_code()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    match command {
        Command::Demo(arguments) => commands::demo::execute(&arguments, &interrupt),
        Command::Run(arguments) => commands::run::execute(&arguments, &interrupt),
        Command::Load(arguments) => commands::load::execute(&arguments, &interrupt),
        Command::Reproduce(arguments) => commands::reproduce::execute(&arguments, &interrupt),
        Command::Calibrate(arguments) => commands::calibrate::execute(&arguments, &interrupt),
        Command::Advise(arguments) => commands::advise::execute(&arguments, &interrupt),
        Command::Trace(arguments) => commands::trace::execute(&arguments, &interrupt),
        Command::Generate(arguments) => commands::generate::execute(&arguments, &interrupt),
        #[cfg(live)]
        Command::Live(command) => commands::live::execute(&command, &interrupt),
        Command::Completions { shell } => commands::shell::completions(shell),
        Command::Man { command } => commands::shell::man(&command),
    }
}

//! The command line: parses the arguments, runs the command, and reports the results. It is a library, so that tests and fuzzers can use
//! its parts; the program is [`run`].
//!
//! Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted.
//!
//! | to find | look in |
//! |---|---|
//! | what a command does | `src/commands/`, a module for each; `dispatch` in `src/lib.rs` calls it |
//! | arguments, help, completions | `src/cli.rs` lists the commands; `src/cli/` has longer lists of arguments |
//! | a subcommand of `baton live` or `baton bench` | `src/commands/live/`, `src/commands/bench/` |
//! | a published experiment | `src/commands/reproduce/`; study files are in `experiments/` at the root of the repository |
//! | runs on several threads, progress, Ctrl-C | `src/runner/` |
//! | tables of runs and their columns | `src/tables.rs`, `src/tables/metrics.rs` |
//! | published numbers next to simulated ones | `src/beside/` |
//! | output to the terminal and to files; exit codes | `src/output.rs`, `src/output/`, [`Failure`] |

mod beside;
mod cli;
mod commands;
mod failure;
mod logs;
mod output;
mod runner;
mod summary;
mod tables;

use baton_config as config;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use cli::{Cli, Command};
pub use failure::Failure;
use runner::Interrupt;
use std::process::ExitCode;

/// Runs the command that the process's arguments specify. `library` is the library that `baton live run` preloads into other programs.
pub fn run(library: &[u8]) -> ExitCode {
    // A shell that asks for completions gets these, and nothing else happens.
    CompleteEnv::with_factory(Cli::command).complete();
    let cli = Cli::try_parse().unwrap_or_else(|error| cli::explain(error).exit());
    output::set_quiet(cli.quiet);
    baton_report::set_width(output::width(&console::Term::stdout()));
    match dispatch(cli.command, library) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::tell(&format!("{failure}\n"));
            failure.exit_code()
        }
    }
}

#[cfg_attr(
    not(live),
    expect(unused_variables, reason = "there is nothing to preload")
)]
fn dispatch(command: Command, library: &[u8]) -> Result<(), Failure> {
    let interrupt = Interrupt::new();
    #[cfg(live)]
    let listens_later = matches!(&command, Command::Live(live) if live.drops_privileges());
    #[cfg(not(live))]
    let listens_later = false;
    if !listens_later {
        interrupt.listen()?;
    }
    match command {
        Command::Demo(arguments) => commands::demo::execute(&arguments, &interrupt),
        Command::Run(arguments) => commands::run::execute(&arguments, &interrupt),
        Command::Sweep(arguments) => commands::sweep::execute(&arguments, &interrupt),
        Command::Compare(arguments) => commands::compare::execute(&arguments),
        Command::Report(arguments) => commands::report::execute(&arguments, &interrupt),
        Command::Explore(arguments) => commands::explore::execute(&arguments),
        Command::Load(arguments) => commands::load::execute(&arguments, &interrupt),
        Command::Bench(command) => commands::bench::execute(&command, &interrupt),
        Command::Reproduce(arguments) => commands::reproduce::execute(&arguments, &interrupt),
        Command::Calibrate(arguments) => commands::calibrate::execute(&arguments, &interrupt),
        Command::Advise(arguments) => commands::advise::execute(&arguments, &interrupt),
        Command::Trace(arguments) => commands::trace::execute(&arguments, &interrupt),
        Command::Generate(arguments) => commands::generate::execute(&arguments, &interrupt),
        #[cfg(live)]
        Command::Live(command) => commands::live::execute(&command, &interrupt, library),
        Command::List(arguments) => commands::list::execute(&arguments),
        Command::Keys(arguments) => commands::keys::execute(&arguments),
        Command::Completions { shell } => commands::shell::completions(shell),
        Command::Man { command } => commands::shell::man(&command),
    }
}

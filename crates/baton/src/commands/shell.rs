//! `baton completions` and `baton man`.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::print;
use clap::CommandFactory;
use clap_complete::env::Shells;

/// Prints a completion script, which asks the program itself for completions.
///
/// # Errors
/// Fails if stdout cannot be written.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or_else(|| {
        Failure::Failed(format!(
            "completions {shell}: there are none for this shell"
        ))
    })?;
    let mut script = Vec::new();
    completer
        .write_registration("COMPLETE", "baton", "baton", "baton", &mut script)
        .map_err(|error| {
            Failure::Failed(format!("cannot generate the completion script: {error}"))
        })?;
    print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page of a command; `names` are the names of the command and of the commands that contain it, outermost first.
///
/// # Errors
/// Fails if there is no such command, or if stdout cannot be written.
pub fn man(names: &[String]) -> Result<(), Failure> {
    let mut baton = Cli::command();
    baton.build();
    let mut command = baton;
    for name in names {
        command = within(&command, name)?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .source(concat!("baton ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|error| Failure::Failed(format!("cannot generate the manual page: {error}")))?;
    print(&String::from_utf8_lossy(&page))
}

/// Returns the subcommand `name` of a command.
fn within(command: &clap::Command, name: &str) -> Result<clap::Command, Failure> {
    command.find_subcommand(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let expected = match known.is_empty() {
            true => format!("{} has no subcommands", command.get_name()),
            false => format!("expected one of {}", known.join(", ")),
        };
        Failure::BadInput(format!("man {name}: no such command; {expected}"))
    })
}

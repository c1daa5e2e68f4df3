//! `baton completions` and `baton man`.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::print;
use clap::CommandFactory;

/// Prints a completion script.
///
/// # Errors
/// Stdout cannot be written.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "baton", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints a manual page.
///
/// # Errors
/// There is no such command, or stdout cannot be written.
pub fn man(name: Option<&str>) -> Result<(), Failure> {
    let mut baton = Cli::command();
    baton.build();
    let command = match name {
        None => baton,
        Some(name) => baton.find_subcommand(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = baton
                .get_subcommands()
                .map(clap::Command::get_name)
                .collect();
            Failure::BadInput(format!(
                "man {name}: no such command; expected one of {}",
                known.join(", ")
            ))
        })?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::Failed(format!("cannot make the manual page: {error}")))?;
    print(&String::from_utf8_lossy(&page))
}

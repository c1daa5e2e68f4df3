//! `baton bench`: what a NIC is good at.

mod nic;
mod table;

pub(super) use table::resource;

use crate::cli::BenchCommand;
use crate::failure::Failure;
use crate::runner::Interrupt;

/// Runs the command.
///
/// # Errors
/// Bad input, an interrupt.
pub fn execute(command: &BenchCommand, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        BenchCommand::Nic(arguments) => nic::execute(arguments, interrupt),
    }
}

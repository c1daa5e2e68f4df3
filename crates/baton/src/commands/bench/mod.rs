//! `baton bench`: measures NICs.

#[cfg(live)]
mod live;
mod nic;
mod table;

use crate::cli::BenchCommand;
use crate::failure::Failure;
use crate::runner::Interrupt;

/// Runs the command.
///
/// # Errors
/// Fails on bad input, or if the user interrupts.
pub fn execute(command: &BenchCommand, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        #[cfg(live)]
        BenchCommand::Nic(arguments) => match live::choose(arguments)? {
            live::Choice::Simulated => nic::execute(arguments, interrupt),
            live::Choice::Interface(partner) => live::execute(arguments, &partner, interrupt),
        },
        #[cfg(not(live))]
        BenchCommand::Nic(arguments) => nic::execute(arguments, interrupt),
        #[cfg(live)]
        BenchCommand::Reflect(arguments) => live::reflect(arguments, interrupt),
    }
}

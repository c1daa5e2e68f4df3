//! `baton live restore`: connections go back to the kernel.

use super::ask_broker;
use crate::cli::RestoreArgs;
use crate::failure::Failure;
use crate::output::print;
use baton_report::grouped;

/// Runs the command.
///
/// # Errors
/// No broker answers, it refuses, or some connections have not gone back.
pub fn execute(arguments: &RestoreArgs) -> Result<(), Failure> {
    match ask_broker(&arguments.broker, |broker| broker.restore_all())? {
        0 => print("all connections are the kernel's; the adapter takes no more\n"),
        left => Err(Failure::Failed(format!(
            "{} connections are not the kernel's again: their applications do not bring them back; the adapter takes no more",
            grouped(left)
        ))),
    }
}

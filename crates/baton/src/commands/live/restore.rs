//! `baton live restore`: moves connections back to the kernel.

use super::ask_broker;
use crate::cli::RestoreArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::runner::Interrupt;
use baton_live::Places;
use baton_report::grouped;
use baton_sockets::broker::BrokerClient;

/// Runs the command.
///
/// # Errors
/// Fails if no broker answers, if the broker refuses, or if some connections were not restored.
pub fn execute(arguments: &RestoreArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let ask = |broker: &mut BrokerClient| broker.restore_all();
    let broker = arguments.broker.clone();
    let broker = broker.unwrap_or_else(|| Places::here().broker());
    match ask_broker(&broker, interrupt, ask)? {
        0 => print("all connections are in the kernel; the adapter takes over no more\n"),
        left => Err(Failure::Failed(format!(
            "{} connections are still on the adapter, because their applications did not take them back; the adapter takes over no more",
            grouped(left)
        ))),
    }
}

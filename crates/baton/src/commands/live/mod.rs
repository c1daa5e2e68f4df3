//! `baton live`: the engine on a real interface.

mod adapter;
mod broker;
mod descriptors;
mod engine;
mod get;
mod restore;
mod route;
mod run;
mod serve;
mod stat;

use crate::cli::LiveCommand;
use crate::failure::Failure;
use crate::runner::Interrupt;
use baton_live::bus::unix_socket::explain;
use baton_live::{LiveError, Stop};
use baton_sockets::broker::{BrokerClient, BrokerError};
use std::io;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Bad input, an interface that fails, an interrupt.
pub fn execute(command: &LiveCommand, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LiveCommand::Adapter(arguments) => adapter::execute(arguments, interrupt),
        LiveCommand::Broker(arguments) => broker::execute(arguments, interrupt),
        LiveCommand::Serve(arguments) => serve::execute(arguments, interrupt),
        LiveCommand::Get(arguments) => get::execute(arguments, interrupt),
        LiveCommand::Route(arguments) => route::execute(arguments, interrupt),
        LiveCommand::Run(arguments) => run::execute(arguments),
        LiveCommand::Restore(arguments) => restore::execute(arguments),
        LiveCommand::Stat(arguments) => stat::execute(arguments, interrupt),
    }
}

/// What a server is asked to do: the first interrupt ends it in order, the second at once.
fn stop(interrupt: &Interrupt) -> impl Fn() -> Stop {
    interrupt.handle_second();
    move || match interrupt.count() {
        0 => Stop::No,
        1 => Stop::InOrder,
        _ => Stop::AtOnce,
    }
}

/// Asks the broker of an adapter beside the kernel.
fn ask_broker<T>(
    path: &Path,
    ask: impl FnOnce(&mut BrokerClient) -> Result<T, BrokerError>,
) -> Result<T, Failure> {
    let mut broker = BrokerClient::connect(path).map_err(|error| bad_broker(path, &error))?;
    ask(&mut broker)
        .map_err(|error| Failure::Failed(format!("--broker {}: {error}", path.display())))
}

/// Nobody answers where a broker was said to be.
fn bad_broker(path: &Path, error: &io::Error) -> Failure {
    let why = explain(error, "`baton live adapter --broker`", "`--broker`");
    Failure::BadInput(format!("--broker {}: {why}", path.display()))
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::BadInput(message) => Self::BadInput(message),
            LiveError::Failed { .. } => Self::Failed(error.to_string()),
        }
    }
}

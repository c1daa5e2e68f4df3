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

use crate::cli::{ConfinementArgs, LiveCommand};
use crate::failure::Failure;
use crate::output::note;
use crate::runner::Interrupt;
use baton_live::bus::unix_socket::explain;
use baton_live::{
    Admission, Confinement, ControlSocket, LiveError, Places, ServiceUser, Stop, confine,
    give_socket,
};
use baton_sockets::broker::{BrokerClient, BrokerError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// An adapter that was started before is there after this time, or was not started.
const LONGEST_START: Duration = Duration::from_secs(3);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

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
        LiveCommand::Restore(arguments) => restore::execute(arguments, interrupt),
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

/// Waits a moment for an adapter that was started just before; whether it has come.
fn await_socket(path: &Path) -> bool {
    let limit = Instant::now() + LONGEST_START;
    while !path.exists() && Instant::now() < limit {
        thread::sleep(BETWEEN_LOOKS);
    }
    path.exists()
}

/// Gives the socket at `path` to the user who is to serve there, and lets a group connect, as far as they are given.
fn admit(
    user: Option<&ServiceUser>,
    group: Option<&Admission>,
    path: &Path,
) -> Result<(), Failure> {
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    give_socket(path, user, group).map_err(|error| {
        let option = match (group, user) {
            (Some(group), _) => format!("--group {}", group.name()),
            (None, user) => format!("--user {}", user.map_or("", ServiceUser::name)),
        };
        let path = path.display();
        Failure::BadInput(format!(
            "{option}: cannot give it {path}: {error}; expected a group of this user, or root"
        ))
    })
}

/// Where `baton live stat` is answered at `path`, in a folder that is there.
fn control_at(
    places: &Places,
    path: &Path,
    user: Option<&ServiceUser>,
) -> Result<ControlSocket, Failure> {
    places.make_for(path, user)?;
    Ok(ControlSocket::bind(path)?)
}

/// The user that a daemon becomes when it is set up; none if it stays what it is.
///
/// # Errors
/// One was given, and only root can become another.
fn service_user(arguments: &ConfinementArgs) -> Result<Option<ServiceUser>, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    match &arguments.user {
        Some(user) if !is_root => Err(Failure::BadInput(format!(
            "--user {}: only root can become another user",
            user.name()
        ))),
        Some(user) => Ok(Some(user.clone())),
        None => {
            let user = ServiceUser::usual();
            if is_root && user.is_none() {
                note(
                    "this user namespace has no user without privileges: the user stays root in it",
                );
            }
            Ok(user)
        }
    }
}

/// Allows only the system calls that a daemon makes, from now on, in all its threads.
fn confine_to(kind: Confinement, arguments: &ConfinementArgs) -> Result<(), Failure> {
    match arguments.no_seccomp {
        true => Ok(()),
        false => Ok(confine(kind)?),
    }
}

/// Asks the broker of an adapter beside the kernel.
fn ask_broker<T: Send + 'static>(
    path: &Path,
    interrupt: &Interrupt,
    ask: impl FnOnce(&mut BrokerClient) -> Result<T, BrokerError> + Send + 'static,
) -> Result<T, Failure> {
    let mut broker = BrokerClient::connect(path).map_err(|error| bad_broker(path, &error))?;
    interrupt
        .during(move || ask(&mut broker))?
        .map_err(|error| {
            let is_silent = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
            let why = match &error {
                BrokerError::NoAnswer(error) if is_silent(error) => no_answer(),
                _ => error.to_string(),
            };
            Failure::Failed(format!("--broker {}: {why}", path.display()))
        })
}

/// Nobody has said anything for as long as it can take.
fn no_answer() -> String {
    let waited = baton_live::LONGEST_ANSWER.as_secs();
    format!("no answer within {waited} s; see whether the process that listens there is stopped")
}

/// Nobody answers where a broker was said to be.
fn bad_broker(path: &Path, error: &io::Error) -> Failure {
    // Of a broker that was killed the adapter may be there still, which the next broker takes over.
    let server = match error.kind() {
        io::ErrorKind::ConnectionRefused => "`baton live broker --iface NAME`",
        _ => "`baton live adapter --iface NAME --broker`",
    };
    let why = explain(error, server, "`--broker`");
    let hint = Places::here().hint(path);
    Failure::BadInput(format!("--broker {}: {why}{hint}", path.display()))
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::BadInput(message) => Self::BadInput(message),
            LiveError::Failed { .. } => Self::Failed(error.to_string()),
        }
    }
}

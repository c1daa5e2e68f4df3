//! `baton live`: the engine on a real interface.

mod adapter;
mod broker;
mod capture;
mod descriptors;
mod engine;
mod get;
mod history;
mod log;
mod restore;
mod route;
mod run;
mod serve;
mod ss;
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

/// Maximum time until an adapter that was just started is ready.
const LONGEST_START: Duration = Duration::from_secs(3);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Runs the command; `library` is the library that `baton live run` preloads.
///
/// # Errors
/// Fails on bad input, if an interface fails, or if the user interrupts.
pub fn execute(
    command: &LiveCommand,
    interrupt: &Interrupt,
    library: &[u8],
) -> Result<(), Failure> {
    match command {
        LiveCommand::Adapter(arguments) => adapter::execute(arguments, interrupt),
        LiveCommand::Broker(arguments) => broker::execute(arguments, interrupt),
        LiveCommand::Serve(arguments) => serve::execute(arguments, interrupt),
        LiveCommand::Get(arguments) => get::execute(arguments, interrupt),
        LiveCommand::Route(arguments) => route::execute(arguments, interrupt),
        LiveCommand::Run(arguments) => run::execute(arguments, library),
        LiveCommand::Restore(arguments) => restore::execute(arguments, interrupt),
        LiveCommand::History(arguments) => history::execute(arguments, interrupt),
        LiveCommand::Capture(arguments) => capture::execute(arguments, interrupt),
        LiveCommand::Ss(arguments) => ss::execute(arguments, interrupt),
        LiveCommand::Stat(arguments) => stat::execute(arguments, interrupt),
    }
}

/// Returns the stop request for a server: the first interrupt ends the server gracefully, the second immediately.
fn stop(interrupt: &Interrupt) -> impl Fn() -> Stop {
    interrupt.handle_second();
    move || match interrupt.count() {
        0 => Stop::No,
        1 => Stop::InOrder,
        _ => Stop::AtOnce,
    }
}

/// Waits briefly for the socket of an adapter that was just started. Returns whether the socket exists.
fn await_socket(path: &Path) -> bool {
    let limit = Instant::now() + LONGEST_START;
    while !path.exists() && Instant::now() < limit {
        thread::sleep(BETWEEN_LOOKS);
    }
    path.exists()
}

/// Makes `user` the owner of the socket at `path`, and lets `group` connect, if they are given.
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
            "{option}: cannot change the owner or group of {path}: {error}; expected a group of this user, or run as root"
        ))
    })
}

/// Creates the control socket for `baton live stat` at `path`, and its folder if necessary.
fn control_at(
    places: &Places,
    path: &Path,
    user: Option<&ServiceUser>,
) -> Result<ControlSocket, Failure> {
    places.make_for(path, user)?;
    Ok(ControlSocket::bind(path)?)
}

/// Returns the user that a daemon changes to after its setup, or `None` if it does not change.
///
/// # Errors
/// Fails if a user was given but the process is not root.
fn service_user(arguments: &ConfinementArgs) -> Result<Option<ServiceUser>, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    match &arguments.user {
        Some(user) if !is_root => Err(Failure::BadInput(format!(
            "--user {}: only root can change to another user; run as root or leave out --user",
            user.name()
        ))),
        Some(user) => Ok(Some(user.clone())),
        None => {
            let user = ServiceUser::usual();
            if is_root && user.is_none() {
                note(
                    "this process stays root, because its user namespace has no unprivileged user to change to",
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

/// Sends a request to the broker of an adapter beside the kernel.
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

/// Returns the message that no answer came within the maximum time.
fn no_answer() -> String {
    let waited = baton_live::LONGEST_ANSWER.as_secs();
    format!("no answer within {waited} s; check whether the process that listens there is stopped")
}

/// Returns the error for a broker that does not answer.
fn bad_broker(path: &Path, error: &io::Error) -> Failure {
    // After a broker was killed, its adapter may still run, and the next broker takes it over.
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

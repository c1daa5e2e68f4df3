//! `baton live run`: runs a program whose TCP is on an adapter.

mod library;
mod reach;

use super::{await_socket, bad_broker};
use crate::cli::RunOnAdapterArgs;
use crate::failure::Failure;
use baton_live::Places;
use baton_live::bus::program::{Unfit, check, find};
use baton_sockets::broker::BrokerClient;
use reach::tell_of_refusals;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Names the variable for the adapter's address.
const ADAPTER: &str = "BATON_ADAPTER";
/// Names the variable for the broker's path.
pub(super) const BROKER: &str = "BATON_BROKER";
/// Names the variable for the policy.
const HANDOFF: &str = "BATON_HANDOFF";
/// Names the variable for the least time that a connection stays in one place, ms.
const LEAST_STAY: &str = "BATON_LEAST_STAY_MS";
/// Names the variable that lets only connections over the loopback interface move.
const LOOPBACK: &str = "BATON_LOOPBACK";
/// Names the variable for the log, in which the library reports what stays in the kernel, and why.
const LOG: &str = "BATON_LOG";
/// Names the variable with the libraries that the loader loads first.
const PRELOAD: &str = "LD_PRELOAD";

/// Replaces this process by the program.
///
/// # Errors
/// Fails if there is no adapter or no such program, if the library cannot be preloaded, or if there is no place for the library.
pub fn execute(arguments: &RunOnAdapterArgs, library: &[u8]) -> Result<(), Failure> {
    let places = Places::here();
    let adapter = arguments.adapter.clone();
    let adapter = adapter.unwrap_or_else(|| places.adapter());
    if !await_socket(&adapter) {
        let hint = places.hint(&adapter);
        let adapter = adapter.display();
        let message = format!(
            "--adapter {adapter}: no adapter listens there; start one: baton live adapter --listen {adapter} ...{hint}"
        );
        return Err(Failure::BadInput(message));
    }
    let Some((name, rest)) = arguments.command.split_first() else {
        return Err(Failure::BadInput(
            "no command is given; expected a program to run, as in baton live run -- nginx"
                .to_owned(),
        ));
    };
    let shown = Path::new(name).display();
    let unfit = |why: Unfit| Failure::BadInput(format!("{shown}: {why}"));
    let path = std::env::var_os("PATH");
    let program = find(name, path.as_deref()).map_err(unfit)?;
    if let Err(why) = check(&program) {
        if !why.runs() {
            return Err(unfit(why));
        }
        let broker = broker(arguments, &places)?;
        return Err(run_without(&program, name, rest, &why, broker));
    }
    let adapter = std::path::absolute(&adapter).unwrap_or(adapter);
    let library = library::place(library)?;
    let mut command = Command::new(&program);
    command.arg0(name).args(rest);
    command
        .env(PRELOAD, preload(&library))
        .env(ADAPTER, &adapter);
    // An outer `baton live run`, perhaps with another adapter, may have set these variables.
    for name in [BROKER, HANDOFF, LEAST_STAY, LOOPBACK] {
        command.env_remove(name);
    }
    let broker = broker(arguments, &places)?;
    let mut sockets = vec![adapter.as_path()];
    sockets.extend(broker.as_deref());
    tell_of_refusals(&sockets);
    if let Some(broker) = broker {
        // If this user may not connect to the broker, the program may not connect to it, either.
        let client = BrokerClient::connect(&broker).ok();
        let is_loopback = client.and_then(|mut client| client.is_loopback().ok());
        if is_loopback == Some(true) {
            command.env(LOOPBACK, "1");
        }
        command.env(BROKER, broker);
        let stay = arguments.least_stay;
        command.envs(stay.map(|stay| (LEAST_STAY, stay.to_string())));
        let policy = arguments.handoff.as_ref();
        command.envs(policy.map(|policy| (HANDOFF, policy.to_string())));
    }
    let error = command.exec();
    Err(Failure::Failed(format!("{shown}: {error}")))
}

/// Runs a program without the library, after a note that says so. `live stat --why` finds the program by the broker's path in its
/// environment.
fn run_without(
    program: &Path,
    name: &OsString,
    rest: &[OsString],
    why: &Unfit,
    broker: Option<PathBuf>,
) -> Failure {
    let shown = Path::new(name).display();
    let note = format!("{shown} runs without Baton: {why}");
    eprintln!("baton: {note}");
    if let Some(log) = std::env::var_os(LOG).filter(|log| log != "stderr") {
        let file = OpenOptions::new().append(true).create(true).open(log);
        // The program runs even if the log cannot be written.
        let _ = file.and_then(|mut file| writeln!(file, "baton: {}: {note}", process::id()));
    }
    let mut command = Command::new(program);
    command.arg0(name).args(rest);
    command.envs(broker.map(|path| (BROKER, path)));
    let error = command.exec();
    Failure::Failed(format!("{shown}: {error}"))
}

/// Returns the path of the broker that moves connections between the kernel and the adapter, or `None` if all of TCP is on the adapter.
fn broker(arguments: &RunOnAdapterArgs, places: &Places) -> Result<Option<PathBuf>, Failure> {
    let given = arguments.broker.clone();
    let is_given = given.is_some();
    let path = given.unwrap_or_else(|| places.broker());
    let absolute = || std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    match UnixStream::connect(&path) {
        Ok(_) => Ok(Some(absolute())),
        // The program may be able to connect as another user.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Some(absolute())),
        Err(error) if is_given => Err(bad_broker(&path, &error)),
        Err(_) if arguments.handoff.is_some() => {
            let message = format!(
                "--handoff: no broker listens at {}; start an adapter beside the kernel: baton live adapter --iface NAME --handoff t4{}",
                path.display(),
                places.hint(&path)
            );
            Err(Failure::BadInput(message))
        }
        Err(_) => Ok(None),
    }
}

/// Returns the value of the variable that preloads the library before other libraries.
fn preload(library: &Path) -> OsString {
    let mut all = OsString::from(library);
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

//! `baton live run`: runs a program whose TCP is on an adapter.

mod program;
mod reach;

use super::{await_socket, bad_broker};
use crate::cli::RunOnAdapterArgs;
use crate::failure::Failure;
use baton_live::Places;
use program::{Unfit, check, find};
use reach::tell_of_refusals;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, which stands beside this program.
const LIBRARY: &str = "libbaton_preload.so";
/// Where the library reads which adapter is meant.
const ADAPTER: &str = "BATON_ADAPTER";
/// Where it reads which broker is meant, and which policy.
const BROKER: &str = "BATON_BROKER";
const HANDOFF: &str = "BATON_HANDOFF";
/// What the loader loads first.
const PRELOAD: &str = "LD_PRELOAD";

/// Replaces this process by the program.
///
/// # Errors
/// There is no library, no adapter or no such program, or it cannot be preloaded.
pub fn execute(arguments: &RunOnAdapterArgs) -> Result<(), Failure> {
    let library = library()?;
    let places = Places::here();
    let adapter = arguments.adapter.clone();
    let adapter = adapter.unwrap_or_else(|| places.adapter());
    if !await_socket(&adapter) {
        let hint = places.hint(&adapter);
        let adapter = adapter.display();
        let message = format!(
            "--adapter {adapter}: no such file; start one: baton live adapter --listen {adapter} ...{hint}"
        );
        return Err(Failure::BadInput(message));
    }
    let Some((name, rest)) = arguments.command.split_first() else {
        return Err(Failure::BadInput("no command is given".to_owned()));
    };
    let shown = Path::new(name).display();
    let unfit = |why: Unfit| Failure::BadInput(format!("{shown}: {why}"));
    let program = find(name).map_err(unfit)?;
    check(&program).map_err(unfit)?;
    let adapter = std::path::absolute(&adapter).unwrap_or(adapter);
    let mut command = Command::new(&program);
    command.arg0(name).args(rest);
    command
        .env(PRELOAD, preload(&library))
        .env(ADAPTER, &adapter);
    // Of a program around this one, which may have another adapter.
    command.env_remove(BROKER).env_remove(HANDOFF);
    let broker = broker(arguments, &places)?;
    let mut sockets = vec![adapter.as_path()];
    sockets.extend(broker.as_deref());
    tell_of_refusals(&sockets);
    if let Some(broker) = broker {
        command.env(BROKER, broker);
        let policy = arguments.handoff.as_ref();
        command.envs(policy.map(|policy| (HANDOFF, policy.to_string())));
    }
    let error = command.exec();
    Err(Failure::Failed(format!("{shown}: {error}")))
}

/// Where the broker listens through which connections move between the kernel and the adapter; none where all of TCP is on the adapter.
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
                "--handoff: nobody listens at {}; start an adapter beside the kernel: baton live adapter --iface NAME --handoff t4{}",
                path.display(),
                places.hint(&path)
            );
            Err(Failure::BadInput(message))
        }
        Err(_) => Ok(None),
    }
}

/// The library.
fn library() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| Failure::Failed(format!("where this program is: {error}")))?;
    let library = own.with_file_name(LIBRARY);
    // Where cargo puts it when it builds tests, and leaves an older one as it is.
    let among_tests = own.with_file_name("deps").join(LIBRARY);
    let built = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    let places = [library.clone(), among_tests].into_iter();
    let found = places.filter_map(|path| Some((built(&path)?, path)));
    if let Some((_, newest)) = found.max() {
        return Ok(newest);
    }
    let message = format!(
        "{}: no such file; build it: cargo build --release -p baton-preload",
        library.display()
    );
    Err(Failure::BadInput(message))
}

/// The library before what is preloaded anyhow.
fn preload(library: &Path) -> OsString {
    let mut all = OsString::from(library);
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

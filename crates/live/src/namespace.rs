//! Network namespaces, with the names that `ip netns` uses.

use crate::error::LiveError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

/// Namespaces that this process has created and not yet deleted.
static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A network namespace; dropping it deletes the namespace if it was created here.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    made: bool,
}

impl Namespace {
    /// Returns the namespace `name`, and creates it if it does not exist.
    ///
    /// # Errors
    /// There is no permission, or no `ip` command.
    pub fn enter_or_make(name: &str) -> Result<Self, LiveError> {
        let made = !path_of(name).exists();
        if made {
            ip(&["netns", "add", name])?;
            remember(name);
        }
        let namespace = Self {
            name: name.to_owned(),
            made,
        };
        if made {
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.made {
            delete(&self.name);
        }
    }
}

/// Deletes all namespaces that this process has created: for an exit that does not wait for destructors.
pub fn remove_all_namespaces() {
    let names = MADE.lock().map(|names| names.clone()).unwrap_or_default();
    for name in names {
        delete(&name);
    }
}

fn remember(name: &str) {
    if let Ok(mut made) = MADE.lock() {
        made.push(name.to_owned());
    }
}

fn delete(name: &str) {
    // The namespace may already be gone, and another failure can no longer be reported.
    let _ = ip(&["netns", "delete", name]);
    if let Ok(mut made) = MADE.lock() {
        made.retain(|other| other != name);
    }
}

fn path_of(name: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(name)
}

/// Runs `work` in the namespace, in a thread of its own, or in the caller's namespace if `namespace` is `None`. `work` can return
/// descriptors that it opened there.
///
/// # Errors
/// There is no such namespace, or no permission to enter it.
pub fn within<T: Send>(
    namespace: Option<&str>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, LiveError> {
    let Some(name) = namespace else {
        return Ok(work());
    };
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            enter(name)?;
            Ok(work())
        });
        match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Moves the calling thread, and all threads that it starts later, to the namespace.
///
/// # Errors
/// There is no such namespace, or no permission to enter it.
pub fn enter(name: &str) -> Result<(), LiveError> {
    let enter = || {
        let file = File::open(path_of(name))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    };
    enter().map_err(|error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "; run as root, or with CAP_SYS_ADMIN",
            _ => "",
        };
        LiveError::BadInput(format!(
            "cannot enter the network namespace {name}: {error}{hint}"
        ))
    })
}

/// Runs `ip` with these arguments.
///
/// # Errors
/// The command cannot be run, or it fails.
pub fn ip(arguments: &[&str]) -> Result<(), LiveError> {
    let what = || format!("`ip {}`", arguments.join(" "));
    let output = match Command::new("ip").args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "the command `ip` is missing; install the package iproute2";
            return Err(LiveError::BadInput(message.to_owned()));
        }
        Err(error) => return Err(LiveError::failed(what())(error)),
    };
    let Output { status, stderr, .. } = output;
    if status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&stderr);
    let reason = reason.trim();
    let hint = if reason.contains("not permitted") || reason.contains("Permission denied") {
        "; run as root, or with CAP_NET_ADMIN and CAP_SYS_ADMIN"
    } else {
        ""
    };
    Err(LiveError::BadInput(format!(
        "{} failed: {reason}{hint}",
        what()
    )))
}

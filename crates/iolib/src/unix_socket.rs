//! Unix sockets at which processes meet, and advice for when that fails.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The reason why a socket cannot be created at a path.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another kind of file exists at the path.
    #[error("exists and is not a socket; give another path")]
    NoSocket,
    /// Another process answers at the path.
    #[error("another process answers there; end it or give another path")]
    InUse,
    /// A socket at which nobody answers cannot be removed.
    #[error("{0}; remove the file or give another path")]
    Stale(io::Error),
    /// The system refuses to create the socket.
    #[error("{0}; give a path in a directory that is writable")]
    Failed(io::Error),
    /// The system refuses a TCP address.
    #[error("{0}; give an address of this machine and a free port")]
    Address(io::Error),
}

/// Connects to the process that listens at `path`, and retries after signals.
///
/// # Errors
/// Nobody listens there, or this process has no permission.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            connected => return connected,
        }
    }
}

/// A listening socket whose file is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
    /// Identity of the file: another process may have created a new one at the path.
    file: Option<(u64, u64)>,
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

impl SocketFile {
    /// Creates a nonblocking socket at `path`. Replaces a file that a killed process has left behind.
    ///
    /// # Errors
    /// A running process uses the path, the file is not a socket, or it cannot be created.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.file_type().is_socket() => return Err(BindError::NoSocket),
            Ok(_) => match connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(BindError::Stale)?;
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(BindError::Stale(error));
                }
                // A process whose backlog is full is busy, not gone.
                Ok(_) | Err(_) => return Err(BindError::InUse),
            },
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(BindError::Failed)?;
        listener.set_nonblocking(true).map_err(BindError::Failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file: file_at(path),
        })
    }

    /// Returns the listening socket.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if file_at(&self.path) == self.file {
            // It is no failure if somebody else has removed the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Explains why nobody could be reached at a socket, and what to do about it. `server` is the command that would answer there, in
/// backticks; `option` is the option that names another path.
pub fn explain(error: &io::Error, server: &str, option: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            format!("there is no socket; start {server} first, or give its {option}")
        }
        ErrorKind::ConnectionRefused => format!(
            "left behind by a process that has exited; start {server} again to replace the file"
        ),
        ErrorKind::PermissionDenied => format!("no permission; run as the user of {server}"),
        _ => error.to_string(),
    }
}

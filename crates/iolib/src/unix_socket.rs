//! Unix sockets that processes meet at, and what to do when they do not.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Why a socket cannot be made at a path.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// There is something else.
    #[error("exists and is no socket; give another path")]
    NoSocket,
    /// A process answers there.
    #[error("another process answers there; end it or give another path")]
    InUse,
    /// A socket that nobody answers at cannot be removed.
    #[error("{0}; remove the file or give another path")]
    Stale(io::Error),
    /// The system refuses.
    #[error("{0}; give a path in a folder that can be written")]
    Failed(io::Error),
    /// The system refuses an address of TCP.
    #[error("{0}; give an address of this machine and a free port")]
    Address(io::Error),
}

/// Connects to who listens at `path`, whatever signals come meanwhile.
///
/// # Errors
/// Nobody does, or this process may not.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            connected => return connected,
        }
    }
}

/// A socket that listens; its file goes when it is dropped.
#[derive(Debug)]
pub struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
    /// Which file that is: another process may have made one there since.
    file: Option<(u64, u64)>,
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

impl SocketFile {
    /// Makes a socket at `path` that does not block. A file that a killed process has left is replaced.
    ///
    /// # Errors
    /// A running process has it, the file is no socket, or it cannot be made.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.file_type().is_socket() => return Err(BindError::NoSocket),
            Ok(_) => match connect(path) {
                Ok(_) => return Err(BindError::InUse),
                Err(_) => fs::remove_file(path).map_err(BindError::Stale)?,
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

    /// The socket.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if file_at(&self.path) == self.file {
            // That somebody has removed it is no failure.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Why nobody could be reached at a socket, and what to do: `server` is the command that would answer there, in backticks, `option` the
/// one that names another path.
pub fn explain(error: &io::Error, server: &str, option: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            format!("nothing there; start {server} first, or give its {option}")
        }
        ErrorKind::ConnectionRefused => format!(
            "left behind by a process that is gone; start {server} again, it replaces the file"
        ),
        ErrorKind::PermissionDenied => format!("no permission; run as the user of {server}"),
        _ => error.to_string(),
    }
}

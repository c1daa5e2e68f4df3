//! A Unix socket on which a running engine answers questions about its state. A client connects, sends its question in a line, and receives
//! an answer.

use crate::error::LiveError;
use crate::places::Places;
use baton_iolib::unix_socket::{self, SocketFile};
use rustix::event::PollFlags;
use smallvec::SmallVec;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Clients that are answered at the same time; more have to wait.
const MOST_CLIENTS: usize = 16;
/// A client waits no longer than this.
pub const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// A client and what it has yet to get.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    answer: Vec<u8>,
    sent: usize,
}

/// The control socket; dropping it removes the socket file.
#[derive(Debug)]
pub struct ControlSocket {
    socket: SocketFile,
    clients: Vec<Client>,
}

impl ControlSocket {
    /// Creates the socket at `path`. A file that a killed process has left behind is replaced.
    ///
    /// # Errors
    /// A running process uses the socket, the file is not a socket, or it cannot be created.
    pub fn bind(path: &Path) -> Result<Self, LiveError> {
        let shown = path.display();
        let bad = |reason: String| LiveError::BadInput(format!("--control {shown}: {reason}"));
        let socket = SocketFile::bind(path).map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            socket,
            clients: Vec::new(),
        })
    }

    /// Answers those that ask; `answer` is called once if there are any.
    pub fn serve(&mut self, answer: impl FnOnce() -> Vec<u8>) {
        let mut fresh = Vec::new();
        while self.clients.len() + fresh.len() < MOST_CLIENTS {
            match self.socket.listener().accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => fresh.push(stream),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if !fresh.is_empty() {
            let text = answer();
            let client = |stream| Client {
                stream,
                answer: text.clone(),
                sent: 0,
            };
            self.clients.extend(fresh.into_iter().map(client));
        }
        self.clients.retain_mut(Client::go_on);
    }

    /// Returns the descriptors to wait for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        let mut fds = SmallVec::new();
        if self.clients.len() < MOST_CLIENTS {
            fds.push((self.socket.listener().as_fd(), PollFlags::IN));
        }
        let clients = self.clients.iter();
        fds.extend(clients.map(|client| (client.stream.as_fd(), PollFlags::OUT)));
        fds
    }
}

impl Client {
    /// Gives it what it takes; false when it is done, or gone.
    fn go_on(&mut self) -> bool {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(0) => return false,
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        false
    }
}

/// Sends a question to the process that answers at `path` and returns the stream, which carries the answer up to its end. `server` is the
/// command that would have started the process, in backticks.
///
/// # Errors
/// None answers there, or the answer is cut off.
pub fn ask(path: &Path, server: &str) -> Result<Vec<u8>, LiveError> {
    let shown = path.display();
    let mut stream = UnixStream::connect(path).map_err(|error| {
        let reason = unix_socket::explain(&error, server, "--control");
        let hint = Places::here().hint(path);
        LiveError::BadInput(format!("--control {shown}: {reason}{hint}"))
    })?;
    let mut answer = Vec::new();
    stream
        .set_read_timeout(Some(LONGEST_ANSWER))
        .and_then(|()| stream.read_to_end(&mut answer))
        .map_err(silent_for_long)
        .map_err(LiveError::failed(format!("--control {shown}")))?;
    Ok(answer)
}

/// Replaces the error of an expired timeout by an explanation.
fn silent_for_long(error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::WouldBlock {
        return error;
    }
    let waited = LONGEST_ANSWER.as_secs();
    let text = format!("no answer within {waited} s; see whether the process is stopped");
    io::Error::new(ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::net::UnixListener;

    const SERVER: &str = "`baton live adapter`";

    #[test]
    fn clients_get_the_answer_and_the_file_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        assert!(ask(&path, SERVER).is_err(), "nobody is there");
        let mut socket = ControlSocket::bind(&path).expect("a socket");
        let text = vec![b'x'; 3_000_000];
        let asking = std::thread::spawn({
            let path = path.clone();
            move || ask(&path, SERVER)
        });
        while !asking.is_finished() {
            socket.serve(|| text.clone());
        }
        let answer = asking.join().expect("no panic").expect("an answer");
        assert_eq!(answer.len(), text.len());
        let refused = ControlSocket::bind(&path).expect_err("it is in use");
        assert!(refused.to_string().contains("another process"), "{refused}");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_file_is_replaced_and_any_other_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        drop(UnixListener::bind(&path).expect("a socket"));
        let stale = ask(&path, SERVER).expect_err("nobody answers");
        let advice = format!("left behind by a process that is gone; start {SERVER} again");
        assert!(stale.to_string().contains(&advice), "{stale}");
        drop(ControlSocket::bind(&path).expect("replaced"));
        fs::write(&path, "text").expect("a file");
        let refused = ControlSocket::bind(&path).expect_err("no socket");
        assert!(refused.to_string().contains("is no socket"), "{refused}");
        assert!(path.exists());
    }
}

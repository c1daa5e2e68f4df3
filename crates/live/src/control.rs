//! A Unix socket on which a running engine answers questions about its state. A client connects, sends its question in a line, and receives
//! an answer.

use crate::capture::CaptureSpec;
use crate::engine::Engine;
use crate::error::LiveError;
use crate::places::Places;
use crate::port::Port;
use crate::throttle::Throttle;
use baton_iolib::unix_socket::{self, SocketFile};
use baton_wire::Time;
use rustix::event::PollFlags;
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of clients that are served at the same time; further clients wait.
const MOST_CLIENTS: usize = 64;
/// Maximum number of clients of one user who is not an operator; further clients are refused.
const MOST_OF_USER: usize = 4;
/// Maximum time that a client waits for an answer.
pub const LONGEST_ANSWER: Duration = Duration::from_secs(10);
/// How long a client may take to send its question. It has [`LONGEST_ANSWER`] to read the answer.
const LONGEST_QUESTION: Duration = Duration::from_secs(1);
/// Maximum length of a question, bytes.
const MOST_QUESTION_BYTES: usize = 1024;

/// The question of a client: a line of JSON. A client that closes its sending direction without a line asks for [`Question::Stat`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The current state: a [`Snapshot`](crate::Snapshot), as JSON.
    Stat,
    /// A live capture file of the frames that pass, until the client closes its sending direction. Only an adapter provides it, and only to
    /// operators.
    Capture(CaptureSpec),
}

/// The reason why a question is not answered, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason, for people.
    pub refused: String,
}

impl Refused {
    /// Returns the JSON line that is sent over the socket.
    pub(crate) fn line(why: impl Into<String>) -> Vec<u8> {
        let refused = why.into();
        let mut text = serde_json::to_vec(&Self { refused }).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

impl Question {
    /// Parses a line without its end; an empty line asks for the state.
    ///
    /// # Errors
    /// The line is not a valid question.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        match line.trim_ascii() {
            b"" => Ok(Self::Stat),
            line => serde_json::from_slice(line).map_err(|error| {
                format!("unknown question: {error}; expected \"stat\" or {{\"capture\":{{}}}}")
            }),
        }
    }
}

/// The client that asks a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The client's user, as the kernel reports it (SO_PEERCRED).
    pub uid: u32,
    /// Whether this user is root, the user who started this process or the user that it runs as: they see the connections of all users.
    pub is_operator: bool,
}

/// A client, with its question so far and the answer that is being sent to it.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    asker: Asker,
    since: Instant,
    question: Vec<u8>,
    /// None until the question is complete.
    answer: Option<Vec<u8>>,
    sent: usize,
}

/// How often a limit of the control socket took effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlStats {
    /// Clients that were refused because their user had the maximum number of clients.
    pub refused: u64,
    /// Clients that were disconnected because they asked or read too slowly.
    pub late: u64,
}

/// The control socket; dropping it removes the socket file.
#[derive(Debug)]
pub struct ControlSocket {
    socket: SocketFile,
    /// The user who started this process.
    starter: u32,
    clients: Vec<Client>,
    stats: ControlStats,
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
            starter: rustix::process::getuid().as_raw(),
            clients: Vec::new(),
            stats: ControlStats::default(),
        })
    }

    /// Returns how often a limit took effect.
    pub fn stats(&self) -> ControlStats {
        self.stats
    }

    /// Answers clients that ask for the state.
    pub fn serve(&mut self, mut answer: impl FnMut(Asker) -> Vec<u8>) {
        self.serve_questions(|asker, question, _| match question {
            Question::Stat => Some(answer(asker)),
            Question::Capture(_) => Some(Refused::line("only an adapter can capture frames")),
        });
    }

    /// Answers all clients. If `answer` returns `None`, it has duplicated the stream and serves the client from then on.
    pub(crate) fn serve_questions(
        &mut self,
        mut answer: impl FnMut(Asker, Question, &UnixStream) -> Option<Vec<u8>>,
    ) {
        // Accept a limited number, because a client that is refused may connect again immediately.
        for _ in self.clients.len()..MOST_CLIENTS {
            match self.socket.listener().accept() {
                Ok((stream, _)) => {
                    let client = self.welcome(stream);
                    self.clients.extend(client);
                }
                Err(_) => break,
            }
        }
        self.clients
            .retain_mut(|client| client.hear(&mut answer) && client.go_on());
        let late = self.clients.extract_if(.., |client| client.is_late());
        self.stats.late += late.count() as u64;
    }

    fn welcome(&mut self, stream: UnixStream) -> Option<Client> {
        stream.set_nonblocking(true).ok()?;
        let uid = sockopt::socket_peercred(&stream).ok()?.uid.as_raw();
        let of_user = self.clients.iter().filter(|other| other.asker.uid == uid);
        let own = rustix::process::getuid().as_raw();
        let is_operator = uid == 0 || uid == own || uid == self.starter;
        if !is_operator && of_user.count() >= MOST_OF_USER {
            self.stats.refused += 1;
            return None;
        }
        Some(Client {
            stream,
            asker: Asker { uid, is_operator },
            since: Instant::now(),
            question: Vec::new(),
            answer: None,
            sent: 0,
        })
    }

    /// Returns the descriptors to wait for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        let mut fds = SmallVec::new();
        if self.clients.len() < MOST_CLIENTS {
            fds.push((self.socket.listener().as_fd(), PollFlags::IN));
        }
        let clients = self.clients.iter();
        fds.extend(clients.map(|client| {
            let waits_for = match client.answer {
                Some(_) => PollFlags::OUT,
                None => PollFlags::IN,
            };
            (client.stream.as_fd(), waits_for)
        }));
        fds
    }
}

/// Waits as [`Engine::wait`] does, and also for clients of `control`, unless they were served a moment ago. Returns which of `fds` are ready.
pub(crate) fn wait<'a, T: Port>(
    engine: &mut Engine<T>,
    due: Option<Time>,
    mut fds: SmallVec<[(BorrowedFd<'a>, PollFlags); 4]>,
    control: Option<&'a ControlSocket>,
    throttle: &mut Throttle,
) -> io::Result<SmallVec<[bool; 8]>> {
    let others = fds.len();
    let pauses_until = throttle.pauses_until(engine.now());
    if let (Some(control), None) = (control, pauses_until) {
        fds.extend(control.fds());
    }
    let due = [due, pauses_until].into_iter().flatten().min();
    let mut ready = engine.wait(due, &fds)?;
    let is_asked = ready[others..].contains(&true);
    ready.truncate(others);
    throttle.handle_wait(engine.now(), is_asked);
    Ok(ready)
}

impl Client {
    /// Returns whether the client has not sent its question, or not read its answer, in time.
    fn is_late(&self) -> bool {
        let longest = match self.answer {
            Some(_) => LONGEST_ANSWER,
            None => LONGEST_QUESTION,
        };
        self.since.elapsed() >= longest
    }

    /// Reads the question. Returns false if the client is gone, or is served elsewhere from now on.
    fn hear(
        &mut self,
        answer: &mut impl FnMut(Asker, Question, &UnixStream) -> Option<Vec<u8>>,
    ) -> bool {
        if self.answer.is_some() {
            return true;
        }
        let is_whole = loop {
            let mut bytes = [0; MOST_QUESTION_BYTES];
            match self.stream.read(&mut bytes) {
                Ok(0) => break true,
                Ok(len) => self.question.extend(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                Err(_) => return false,
            }
            if self.question.contains(&b'\n') || self.question.len() > MOST_QUESTION_BYTES {
                break true;
            }
        };
        if !is_whole {
            return true;
        }
        let line = self.question.split(|byte| *byte == b'\n').next();
        let line = line.filter(|line| line.len() <= MOST_QUESTION_BYTES);
        let question = match line {
            Some(line) => Question::parse(line),
            None => Err(format!(
                "the question is longer than {MOST_QUESTION_BYTES} bytes"
            )),
        };
        self.answer = match question {
            Ok(question) => answer(self.asker, question, &self.stream),
            Err(refused) => Some(Refused::line(refused)),
        };
        self.since = Instant::now();
        self.answer.is_some()
    }

    /// Sends as much of the answer as the client accepts; returns false if the answer is complete or the client is gone.
    fn go_on(&mut self) -> bool {
        let Some(answer) = &self.answer else {
            return true;
        };
        while self.sent < answer.len() {
            match self.stream.write(&answer[self.sent..]) {
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
/// No process answers there.
pub fn ask_for(path: &Path, server: &str, question: &Question) -> Result<UnixStream, LiveError> {
    let shown = path.display();
    let mut stream = UnixStream::connect(path).map_err(|error| {
        let reason = unix_socket::explain(&error, server, "--control");
        let hint = Places::here().hint(path);
        LiveError::BadInput(format!("--control {shown}: {reason}{hint}"))
    })?;
    let mut line = serde_json::to_vec(question).unwrap_or_default();
    line.push(b'\n');
    stream
        .set_read_timeout(Some(LONGEST_ANSWER))
        .and_then(|()| stream.write_all(&line))
        .map_err(LiveError::failed(format!("--control {shown}")))?;
    Ok(stream)
}

/// Returns the state of the process that answers at `path`. `server` is the command that would have started the process, in backticks.
///
/// # Errors
/// No process answers there, it refuses, or the answer is cut off.
pub fn ask(path: &Path, server: &str) -> Result<Vec<u8>, LiveError> {
    let shown = path.display();
    let mut stream = ask_for(path, server, &Question::Stat)?;
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .map_err(silent_for_long)
        .map_err(LiveError::failed(format!("--control {shown}")))?;
    match serde_json::from_slice::<Refused>(&answer) {
        Ok(Refused { refused }) => {
            Err(LiveError::BadInput(format!("--control {shown}: {refused}")))
        }
        Err(_) => Ok(answer),
    }
}

/// Replaces the error of an expired timeout by an explanation.
fn silent_for_long(error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::WouldBlock {
        return error;
    }
    let waited = LONGEST_ANSWER.as_secs();
    let text = format!("no answer within {waited} s; check whether the process is stopped");
    io::Error::new(ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::Shutdown;
    use std::os::unix::net::UnixListener;

    const SERVER: &str = "`baton live adapter`";

    #[test]
    fn clients_get_the_answer_and_the_socket_file_is_removed() {
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
            socket.serve(|_| text.clone());
        }
        let answer = asking.join().expect("no panic").expect("an answer");
        assert_eq!(answer.len(), text.len());
        let refused = ControlSocket::bind(&path).expect_err("it is in use");
        assert!(refused.to_string().contains("another process"), "{refused}");
        drop(socket);
        assert!(!path.exists());
    }

    /// Returns the answer to a client that sends `said`.
    fn heard(socket: &mut ControlSocket, path: &Path, said: &[u8]) -> String {
        let mut stream = UnixStream::connect(path).expect("it listens");
        stream.write_all(said).expect("it is there");
        stream.shutdown(Shutdown::Write).expect("it is open");
        let hearing = std::thread::spawn(move || {
            let mut text = String::new();
            stream.read_to_string(&mut text).map(|_| text)
        });
        while !hearing.is_finished() {
            socket.serve(|_| b"what goes on".to_vec());
        }
        hearing.join().expect("no panic").expect("text")
    }

    #[test]
    fn a_question_is_a_line_and_an_empty_one_asks_for_the_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let mut socket = ControlSocket::bind(&path).expect("a socket");
        for said in [&b""[..], b"\n", b"\"stat\"\n", b"\"stat\""] {
            assert_eq!(heard(&mut socket, &path, said), "what goes on");
        }
        for said in [&b"\"start\"\n"[..], b"{\n", &[b'x'; 1500]] {
            let heard = heard(&mut socket, &path, said);
            assert!(heard.starts_with("{\"refused\":"), "{heard}");
        }
    }

    #[test]
    fn silent_clients_are_disconnected_after_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let mut socket = ControlSocket::bind(&path).expect("a socket");
        let mut silent: Vec<_> = (0..MOST_CLIENTS)
            .map(|_| UnixStream::connect(&path).expect("it listens"))
            .collect();
        let served = || b"what goes on".to_vec();
        socket.serve(|_| served());
        assert_eq!(socket.clients.len(), MOST_CLIENTS);
        for client in &mut socket.clients {
            client.since -= LONGEST_QUESTION;
        }
        socket.serve(|_| served());
        assert_eq!(socket.clients.len(), 0);
        assert_eq!(socket.stats().late, MOST_CLIENTS as u64);
        assert_eq!(silent[0].read(&mut [0; 1]).expect("an end"), 0);
        assert_eq!(heard(&mut socket, &path, b"\n"), "what goes on");
    }

    #[test]
    fn only_a_stale_socket_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        drop(UnixListener::bind(&path).expect("a socket"));
        let stale = ask(&path, SERVER).expect_err("nobody answers");
        let advice = format!("left behind by a process that has exited; start {SERVER} again");
        assert!(stale.to_string().contains(&advice), "{stale}");
        drop(ControlSocket::bind(&path).expect("replaced"));
        fs::write(&path, "text").expect("a file");
        let refused = ControlSocket::bind(&path).expect_err("no socket");
        assert!(refused.to_string().contains("is not a socket"), "{refused}");
        assert!(path.exists());
    }
}

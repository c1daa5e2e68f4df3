//! One connection of the web server, which receives requests and sends responses in order.

use super::http::{Http, Parsed, Program, Request};
use super::{CONNECTION_BYTES, Config, FileIo, Stats};
use crate::MeteredSockets;
use baton_host::{FileContent, Gone, Receive, SocketId};
use baton_kernel::footprint::{APP_HALF_BYTES, APP_RECEIVE_OFFSET, APP_SEND_OFFSET};
use baton_kernel::{Access, Op, Pool};
use baton_wire::Payload;
use std::collections::VecDeque;

/// Maximum number of bytes that one read requests.
const READ_BYTES: usize = 8192;
/// Bytes of entries in the server's caches that finding a file touches. Flash has caches of path names, of response headers and of open
/// files (Pai, Druschel and Zwaenepoel, "Flash", USENIX 1999, 5.2 to 5.4); one or two lines of each are *assumed*.
const FILE_BYTES: u32 = 256;
/// Offset and size of the part of the connection's block that a request fills, after the part that every event touches: method, URL,
/// translated name, the header's fields, times, ranges, status. *Assumed* to be about as large as in `httpd_conn` of thttpd 2.2.
const REQUEST: (u32, u32) = (CONNECTION_BYTES, 320);
/// Maximum number of content bytes given to the socket at a time.
const LONGEST_RUN: u64 = 1 << 30;
/// Maximum number of content bytes that are copied at a time: the size of the connection's buffer.
const COPIED_RUN: u64 = APP_HALF_BYTES as u64;

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The connection waits for requests, buffer space or its turn.
    Waits,
    /// The connection's turn has ended, and it has more to send.
    Yields,
    /// The client has received all responses and will send no more requests.
    Done,
    /// The connection no longer exists.
    Lost,
    /// The client sent an invalid request.
    Bad,
    /// The content no longer matches the header.
    Changed,
}

/// Maximum number of bytes read and dropped from a client that continues to send after the last response; beyond that the connection is
/// closed.
const MOST_DRAINED_BYTES: usize = 256 << 20;

/// A response in progress.
#[derive(Debug)]
struct Response<P> {
    /// The request, or `None` for an interim response.
    request: Option<Request>,
    /// Remaining part of the header.
    head: Option<P>,
    /// Content bytes given to the socket so far.
    sent: u64,
    /// Dynamic content that was produced and not yet accepted by the socket.
    produced: Option<P>,
}

#[derive(Debug)]
pub(super) struct Connection<P, S> {
    open: bool,
    session: S,
    received: VecDeque<P>,
    received_len: usize,
    response: Option<Response<P>>,
    /// Whether the connection waits for its next turn.
    in_line: bool,
    /// Whether the client will send no more data.
    ended: bool,
    /// Number of bytes received and dropped since the sending direction was closed, if it was (RFC 9112 9.6).
    drained: Option<usize>,
    /// Time of the last activity, seconds.
    active_s: u32,
}

impl<P, S: Default> Default for Connection<P, S> {
    fn default() -> Self {
        Self {
            open: false,
            session: S::default(),
            received: VecDeque::new(),
            received_len: 0,
            response: None,
            in_line: false,
            ended: false,
            drained: None,
            active_s: 0,
        }
    }
}

impl<P: Payload, S: Default> Connection<P, S> {
    pub(super) fn open(&mut self, now_s: u32) {
        debug_assert!(!self.open, "a socket is accepted once");
        self.open = true;
        self.active_s = now_s;
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the time of the last activity, seconds.
    pub(super) fn active_s(&self) -> u32 {
        self.active_s
    }

    /// Records activity at this time.
    pub(super) fn acted(&mut self, now_s: u32) {
        self.active_s = now_s;
    }

    /// Ends the wait for a turn. Returns false if the connection was not waiting.
    pub(super) fn take_turn(&mut self) -> bool {
        std::mem::take(&mut self.in_line)
    }

    /// Reports whether a response is in progress, or the client has not closed the connection after the server has.
    pub(super) fn is_unfinished(&self) -> bool {
        self.response.is_some() || self.drained.is_some()
    }

    pub(super) fn close(&mut self, http: &mut impl Http<P, Session = S>) {
        if let Some(request) = self.response.take().and_then(|response| response.request) {
            http.finish(&request);
        }
        http.end(&mut self.session);
        *self = Self {
            received: std::mem::take(&mut self.received),
            ..Self::default()
        };
        self.received.clear();
    }

    /// Starts the response to an incomplete request that timed out. Returns false if there is none to send.
    pub(super) fn tell_too_late(
        &mut self,
        http: &mut impl Http<P, Session = S>,
        now_s: u32,
    ) -> bool {
        if self.is_unfinished() || self.received_len == 0 {
            return false;
        }
        let Some(request) = http.too_late(&mut self.session) else {
            return false;
        };
        self.active_s = now_s;
        self.response = Some(Response::of(request, http.head(&request)));
        true
    }

    /// Reads and answers requests until nothing more can be done now.
    pub(super) fn advance(
        &mut self,
        config: &Config,
        http: &mut impl Http<P, Session = S>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        stats: &mut Stats,
    ) -> Progress {
        loop {
            if self.drained.is_some() {
                return self.drain(sockets, socket);
            }
            if self.read(config, sockets, socket).is_err() {
                return Progress::Lost;
            }
            if self.in_line {
                return Progress::Waits;
            }
            if self.response.is_none() {
                match http.parse(&mut self.session, &mut self.received) {
                    Parsed::Request(request) => self.begin(config, http, sockets, socket, request),
                    Parsed::Taken(len) => {
                        self.received_len -= len as usize;
                        continue;
                    }
                    Parsed::Interim { response, len } => {
                        self.received_len -= len as usize;
                        self.response = Some(Response::interim(response));
                    }
                    Parsed::Bad => return Progress::Bad,
                    Parsed::Incomplete if !self.ended => return Progress::Waits,
                    Parsed::Incomplete if self.received_len == 0 => return Progress::Done,
                    Parsed::Incomplete => return Progress::Lost,
                }
            }
            match self.send(config, http, sockets, socket, stats) {
                Ok(Sent::All) => {
                    let last = self.finish(config, http, sockets, socket, stats);
                    if last && !sockets.shutdown(socket) {
                        return Progress::Done;
                    }
                    self.drained = last.then_some(0);
                }
                Ok(Sent::Some) => return Progress::Waits,
                Ok(Sent::Turn) => {
                    self.in_line = true;
                    return Progress::Yields;
                }
                Ok(Sent::Changed) => return Progress::Changed,
                Err(Gone) => return Progress::Lost,
            }
        }
    }

    /// Drops received data until the client closes the connection.
    fn drain(&mut self, sockets: &mut impl MeteredSockets<P>, socket: SocketId) -> Progress {
        let mut total = self.drained.unwrap_or_default();
        loop {
            match sockets.receive(socket, READ_BYTES) {
                Receive::Data(data) if total + data.len() <= MOST_DRAINED_BYTES => {
                    total += data.len();
                    self.drained = Some(total);
                }
                Receive::WouldBlock => return Progress::Waits,
                Receive::Data(_) | Receive::EndOfStream | Receive::Gone => return Progress::Done,
            }
        }
    }

    /// Reads received data, as far as reading ahead is allowed.
    fn read(
        &mut self,
        config: &Config,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
    ) -> Result<(), Gone> {
        while !self.ended && self.received_len < config.read_ahead_bytes as usize {
            let unread = sockets.unread(socket);
            if unread.len == 0 && !unread.ended {
                break;
            }
            match sockets.receive(socket, READ_BYTES) {
                Receive::Data(data) => {
                    self.received_len += data.len();
                    let joined = self
                        .received
                        .back_mut()
                        .is_some_and(|last| last.try_append(&data));
                    if !joined {
                        self.received.push_back(data);
                    }
                }
                Receive::EndOfStream => self.ended = true,
                Receive::WouldBlock => break,
                Receive::Gone => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Handles a request that was read: parses it, finds the file, and creates the header.
    fn begin(
        &mut self,
        config: &Config,
        http: &mut impl Http<P, Session = S>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        request: Request,
    ) {
        self.received_len -= request.len as usize;
        sockets.work(Op::AppParse, 1);
        let text_len = request.len.min(APP_HALF_BYTES);
        sockets.touch(
            Pool::AppBuffer,
            socket.0,
            APP_RECEIVE_OFFSET,
            text_len,
            Access::Read,
        );
        let (offset, len) = REQUEST;
        sockets.touch(Pool::AppConnection, socket.0, offset, len, Access::Write);
        sockets.work(Op::AppLookup, 1);
        sockets.touch(Pool::AppFile, request.file.0, 0, FILE_BYTES, Access::Read);
        let head = http.head(&request);
        sockets.work(Op::AppHeader, 1);
        let head_len = (head.len() as u32).min(APP_HALF_BYTES);
        sockets.touch(
            Pool::AppBuffer,
            socket.0,
            APP_SEND_OFFSET,
            head_len,
            Access::Write,
        );
        if config.cork && request.content_len > 0 {
            sockets.set_cork(socket, true);
        }
        self.response = Some(Response::of(request, head));
    }

    /// Gives the socket as much of the response as it accepts in a turn.
    fn send(
        &mut self,
        config: &Config,
        http: &mut impl Http<P, Session = S>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        stats: &mut Stats,
    ) -> Result<Sent, Gone> {
        let Some(response) = &mut self.response else {
            return Ok(Sent::Some);
        };
        if !send_copied(&mut response.head, sockets, socket)? {
            return Ok(Sent::Some);
        }
        let Some(request) = response.request else {
            return Ok(Sent::All);
        };
        let end = match config.turn_bytes {
            Some(turn) => request.content_len.min(response.sent + u64::from(turn)),
            None => request.content_len,
        };
        while response.sent < end {
            let left = end - response.sent;
            let before = response.sent;
            let outcome = match request.program {
                Some(program) => {
                    response.send_dynamic((&request, program), http, sockets, socket, left)?
                }
                None if config.file_io == FileIo::Sendfile => {
                    response.send_file(&request, http, sockets, socket, left)?
                }
                None => {
                    response.send_read((&request, config.file_io), http, sockets, socket, left)?
                }
            };
            stats.content_bytes += response.sent - before;
            if outcome != Sent::All {
                return Ok(outcome);
            }
        }
        Ok(match end < request.content_len {
            true => Sent::Turn,
            false => Sent::All,
        })
    }

    /// Ends a response that was completely given to the socket. Returns true if it was the last.
    fn finish(
        &mut self,
        config: &Config,
        http: &mut impl Http<P, Session = S>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        stats: &mut Stats,
    ) -> bool {
        let Some(request) = self.response.take().and_then(|response| response.request) else {
            return false;
        };
        http.finish(&request);
        if config.cork && request.content_len > 0 {
            sockets.set_cork(socket, false);
        }
        sockets.work(Op::AppFinish, 1);
        stats.responses += 1;
        stats.dynamic += u64::from(request.program.is_some());
        request.last || !config.keep_alive
    }
}

/// Result of giving content to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// The socket accepted all of it.
    All,
    /// The socket's buffer is full.
    Some,
    /// The socket accepted a whole turn's content, and there is more.
    Turn,
    /// The content no longer exists.
    Changed,
}

impl<P: Payload> Response<P> {
    fn of(request: Request, head: P) -> Self {
        Self {
            request: Some(request),
            head: Some(head),
            sent: 0,
            produced: None,
        }
    }

    fn interim(head: P) -> Self {
        Self {
            request: None,
            head: Some(head),
            sent: 0,
            produced: None,
        }
    }

    /// Gives a run of a file's content to the socket.
    fn send_file(
        &mut self,
        request: &Request,
        http: &mut impl Http<P>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        left: u64,
    ) -> Result<Sent, Gone> {
        let end = self.sent + left;
        let mut name = http.name(request, self.sent);
        if let Some(content) = &mut name {
            let len = content.len.min(left);
            let cached = sockets.send_cached(socket, &FileContent { len, ..*content })?;
            self.sent += cached.taken;
            match cached.has_room {
                _ if cached.taken == left => return Ok(Sent::All),
                false => return Ok(Sent::Some),
                true => *content = content.after(cached.taken),
            }
        }
        let len = (end - self.sent).min(LONGEST_RUN) as u32;
        let Some(content) = http.content(request, self.sent, len) else {
            return Ok(Sent::Changed);
        };
        let len = content.len();
        let taken = match name {
            Some(name) => sockets.send_file(socket, name, content)?,
            None => sockets.send(socket, content)?,
        };
        self.sent += taken as u64;
        Ok(if taken == len { Sent::All } else { Sent::Some })
    }

    /// Gives a run of dynamic content to the socket. Produces the run unless the last one was not completely accepted.
    fn send_dynamic(
        &mut self,
        (request, program): (&Request, Program),
        http: &mut impl Http<P>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        left: u64,
    ) -> Result<Sent, Gone> {
        if self.produced.is_none() {
            if self.sent == 0 {
                program.begin(sockets);
            }
            let Some(len) = self.take_run(request, http, left) else {
                return Ok(Sent::Changed);
            };
            let page = FileContent::new(request.file, self.sent, len);
            program.produce(&page, sockets, socket);
        }
        self.send_produced(sockets, socket)
    }

    /// Gives a run of a file's content to the socket by copying. Reads the run unless the last one was not completely accepted.
    fn send_read(
        &mut self,
        (request, how): (&Request, FileIo),
        http: &mut impl Http<P>,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
        left: u64,
    ) -> Result<Sent, Gone> {
        if self.produced.is_none() {
            let Some(len) = self.take_run(request, http, left) else {
                return Ok(Sent::Changed);
            };
            if let Some(name) = http.name(request, self.sent) {
                let part = FileContent { len, ..name };
                match how {
                    FileIo::Read => sockets.read(socket, &part),
                    FileIo::Sendfile | FileIo::Mapped => sockets.read_file(&part),
                }
            }
        }
        self.send_produced(sockets, socket)
    }

    /// Takes the next run of content, which is to be copied. Returns its length, or `None` if the content has changed.
    fn take_run(&mut self, request: &Request, http: &mut impl Http<P>, left: u64) -> Option<u64> {
        let len = left.min(COPIED_RUN);
        self.produced = Some(http.content(request, self.sent, len as u32)?);
        Some(len)
    }

    /// Gives the rest of a run to the socket.
    fn send_produced(
        &mut self,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
    ) -> Result<Sent, Gone> {
        let before = self.produced.as_ref().map_or(0, Payload::len);
        let done = send_copied(&mut self.produced, sockets, socket)?;
        self.sent += (before - self.produced.as_ref().map_or(0, Payload::len)) as u64;
        Ok(if done { Sent::All } else { Sent::Some })
    }
}

/// Sends the rest of `data` by copying. Returns true when all was sent.
fn send_copied<P: Payload>(
    data: &mut Option<P>,
    sockets: &mut impl MeteredSockets<P>,
    socket: SocketId,
) -> Result<bool, Gone> {
    let Some(left) = data else { return Ok(true) };
    let len = left.len();
    let taken = sockets.send(socket, left.clone())?;
    *data = if taken == len {
        None
    } else {
        Some(left.slice(taken, len - taken))
    };
    Ok(data.is_none())
}

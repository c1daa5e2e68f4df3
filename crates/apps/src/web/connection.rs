//! One connection of the web server: requests in, responses out, in order.

use super::http::{Http, Parsed, Request};
use super::{Config, Stats};
use baton_host::footprint::{APP_HALF_BYTES, APP_RECEIVE_OFFSET, APP_SEND_OFFSET};
use baton_host::{Access, Gone, Op, Pool, Receive, SocketId, Sockets};
use baton_tcp::Payload;
use std::collections::VecDeque;

/// Most bytes one read asks for.
const READ_BYTES: usize = 8192;
/// What looking a file up touches of its cache entry, bytes.
const FILE_BYTES: u32 = 128;
/// Content is given to the socket in runs of at most so many bytes.
const LONGEST_RUN: u64 = 1 << 30;
/// Dynamic content is produced in runs of at most so many bytes: what the connection's buffer holds.
const DYNAMIC_RUN: u64 = APP_HALF_BYTES as u64;

/// How far a connection got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for requests or for room.
    Waits,
    /// The client has got all and will ask for no more.
    Done,
    /// It is gone.
    Lost,
    /// The client talks nonsense.
    Bad,
}

/// A response under way.
#[derive(Debug)]
struct Response<P> {
    request: Request,
    /// What is left of the header.
    head: Option<P>,
    /// Content given to the socket so far, bytes.
    sent: u64,
    /// Dynamic content that was produced and not yet taken by the socket.
    produced: Option<P>,
}

#[derive(Debug)]
pub(super) struct Connection<P> {
    open: bool,
    received: VecDeque<P>,
    received_len: usize,
    response: Option<Response<P>>,
    /// The client will send no more.
    ended: bool,
}

impl<P> Default for Connection<P> {
    fn default() -> Self {
        Self {
            open: false,
            received: VecDeque::new(),
            received_len: 0,
            response: None,
            ended: false,
        }
    }
}

impl<P: Payload> Connection<P> {
    pub(super) fn open(&mut self) {
        debug_assert!(!self.open, "a socket is accepted once");
        self.open = true;
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn close(&mut self) {
        self.open = false;
        self.ended = false;
        self.received.clear();
        self.received_len = 0;
        self.response = None;
    }

    /// Reads, answers and reads again, until nothing is left to do now.
    pub(super) fn advance(
        &mut self,
        config: &Config,
        http: &mut impl Http<P>,
        sockets: &mut impl Sockets<P>,
        socket: SocketId,
        stats: &mut Stats,
    ) -> Progress {
        loop {
            if self.read(config, sockets, socket).is_err() {
                return Progress::Lost;
            }
            if self.response.is_none() {
                match http.parse(&mut self.received) {
                    Parsed::Request(request) => self.begin(config, http, sockets, socket, request),
                    Parsed::Bad => return Progress::Bad,
                    Parsed::Incomplete if !self.ended => return Progress::Waits,
                    Parsed::Incomplete if self.received_len == 0 => return Progress::Done,
                    Parsed::Incomplete => return Progress::Lost,
                }
            }
            match self.send(http, sockets, socket, stats) {
                Ok(true) => self.finish(config, sockets, socket, stats),
                Ok(false) => return Progress::Waits,
                Err(Gone) => return Progress::Lost,
            }
        }
    }

    /// Reads what has come, as far as reading ahead is allowed.
    fn read(
        &mut self,
        config: &Config,
        sockets: &mut impl Sockets<P>,
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

    /// A request has been read: parse it, find the file, make the header.
    fn begin(
        &mut self,
        config: &Config,
        http: &mut impl Http<P>,
        sockets: &mut impl Sockets<P>,
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
        self.response = Some(Response {
            request,
            head: Some(head),
            sent: 0,
            produced: None,
        });
    }

    /// Gives the socket what it takes of the response; true when that was the last of it.
    fn send(
        &mut self,
        http: &mut impl Http<P>,
        sockets: &mut impl Sockets<P>,
        socket: SocketId,
        stats: &mut Stats,
    ) -> Result<bool, Gone> {
        let Some(response) = &mut self.response else {
            return Ok(false);
        };
        if !send_copied(&mut response.head, sockets, socket)? {
            return Ok(false);
        }
        let request = response.request;
        while response.sent < request.content_len {
            let left = request.content_len - response.sent;
            let before = response.sent;
            let all = if request.dynamic {
                response.send_dynamic(http, sockets, socket, left)?
            } else {
                let len = left.min(LONGEST_RUN) as u32;
                let content = http.content(&request, response.sent, len);
                let taken = sockets.send_file(socket, request.file, response.sent, content)?;
                response.sent += taken as u64;
                taken == len as usize
            };
            stats.content_bytes += response.sent - before;
            if !all {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(
        &mut self,
        config: &Config,
        sockets: &mut impl Sockets<P>,
        socket: SocketId,
        stats: &mut Stats,
    ) {
        let Some(response) = self.response.take() else {
            return;
        };
        if config.cork && response.request.content_len > 0 {
            sockets.set_cork(socket, false);
        }
        sockets.work(Op::AppFinish, 1);
        stats.responses += 1;
        stats.dynamic += u64::from(response.request.dynamic);
    }
}

impl<P: Payload> Response<P> {
    /// Produces a run of content, unless one is left over, and gives it to the socket; true when the run was taken.
    fn send_dynamic(
        &mut self,
        http: &mut impl Http<P>,
        sockets: &mut impl Sockets<P>,
        socket: SocketId,
        left: u64,
    ) -> Result<bool, Gone> {
        if self.produced.is_none() {
            let len = left.min(DYNAMIC_RUN) as u32;
            self.produced = Some(http.content(&self.request, self.sent, len));
            sockets.work(Op::AppDynamic, len.div_ceil(1024));
            sockets.touch(
                Pool::AppBuffer,
                socket.0,
                APP_SEND_OFFSET,
                len,
                Access::Write,
            );
        }
        let before = self.produced.as_ref().map_or(0, Payload::len);
        let done = send_copied(&mut self.produced, sockets, socket)?;
        self.sent += (before - self.produced.as_ref().map_or(0, Payload::len)) as u64;
        Ok(done)
    }
}

/// Sends what is left of `data` by copying; true when nothing is left.
fn send_copied<P: Payload>(
    data: &mut Option<P>,
    sockets: &mut impl Sockets<P>,
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

//! Clients: ask for parts of files, several requests at a time, and verify every byte they get.

use super::files::History;
use super::{Random, World};
use baton_host::FileId;
use baton_tcp::{CloseReason, ConnId, Event};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::fmt;

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 24;
/// Bytes in front of the content: where it begins, and how long it is.
pub const HEAD_BYTES: usize = 16;

/// Asks for `len` bytes at `offset` of a file, and `padding` bytes of made-up content behind them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    pub file: FileId,
    pub offset: u64,
    pub len: u64,
    pub padding: u32,
}

impl Request {
    fn random(files: u64, random: &mut Random) -> Self {
        // The first files are the most popular.
        let file = random.below(files).min(random.below(files)) as u32;
        let whole = random.percent(70);
        Self {
            file: FileId(file),
            offset: if whole { 0 } else { random.below(40_000) },
            len: if whole { 1 << 20 } else { random.below(20_000) },
            padding: if random.percent(30) {
                random.below(3000) as u32
            } else {
                0
            },
        }
    }

    fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(REQUEST_BYTES);
        bytes.extend_from_slice(&self.file.0.to_be_bytes());
        bytes.extend_from_slice(&self.padding.to_be_bytes());
        bytes.extend_from_slice(&self.offset.to_be_bytes());
        bytes.extend_from_slice(&self.len.to_be_bytes());
        bytes.freeze()
    }

    pub fn decode(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        let u64_at = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"));
        Self {
            file: FileId(u32_at(0)),
            padding: u32_at(4),
            offset: u64_at(8),
            len: u64_at(16),
        }
    }
}

/// Content that is no file's.
pub fn padding(len: u32) -> Bytes {
    (0..len).map(|at| (at * 7) as u8).collect()
}

/// A request that was sent, and the moment.
#[derive(Debug)]
struct Asked {
    request: Request,
    moment: u64,
}

/// One client with one connection.
pub struct Client {
    pub conn: Option<ConnId>,
    left: u32,
    pipeline: usize,
    asked: VecDeque<Asked>,
    unwritten: Bytes,
    received: BytesMut,
    closed: bool,
    pub complete: u64,
    /// The server ended the connection early, for which there was a reason.
    pub shrunk: bool,
    pub outcome: Option<CloseReason>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("left", &self.left)
            .field("complete", &self.complete)
            .field("asked", &self.asked)
            .field("received", &self.received.len())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub fn new(conn: ConnId, random: &mut Random) -> Self {
        Self {
            conn: Some(conn),
            left: 1 + random.below(8) as u32,
            pipeline: 1 + random.below(3) as usize,
            asked: VecDeque::new(),
            unwritten: Bytes::new(),
            received: BytesMut::new(),
            closed: false,
            complete: 0,
            shrunk: false,
            outcome: None,
        }
    }

    /// All requests have been answered, or the connection was ended for a reason.
    pub fn is_served(&self) -> bool {
        self.shrunk || self.left == 0 && self.asked.is_empty()
    }

    /// Takes complete responses off what was received.
    fn read(&mut self, history: &History) {
        while let Some(asked) = self.asked.front() {
            let Some((offset, len)) = head(&self.received) else {
                return;
            };
            let tail = asked.request.padding as usize;
            if self.received.len() < HEAD_BYTES + len + tail {
                return;
            }
            let response = self.received.split_to(HEAD_BYTES + len + tail);
            let content = &response[HEAD_BYTES..HEAD_BYTES + len];
            history.verify(asked.request.file, offset, content, asked.moment);
            assert_eq!(response[HEAD_BYTES + len..], padding(tail as u32));
            self.asked.pop_front();
            self.complete += 1;
        }
        assert!(self.received.is_empty(), "nothing comes unasked");
    }

    /// The server says no more. If it owes something that must be because a file has become shorter; a response before that may be
    /// lost too, for the server closes with requests unread.
    fn end(&mut self, history: &History) {
        let Some(asked) = self.asked.front() else {
            return;
        };
        if let Some((offset, len)) = head(&self.received) {
            let got = (self.received.len() - HEAD_BYTES).min(len);
            let content = &self.received[HEAD_BYTES..HEAD_BYTES + got];
            history.verify(asked.request.file, offset, content, asked.moment);
        }
        let truncated = |asked: &Asked| history.was_truncated(asked.request.file, asked.moment);
        assert!(
            self.asked.iter().any(truncated),
            "a response ends early because a file was truncated: {self:?}"
        );
        self.shrunk = true;
    }
}

/// Where a response's content begins in its file, and its length.
fn head(received: &[u8]) -> Option<(u64, usize)> {
    let (offset, len) = received.get(..HEAD_BYTES)?.split_at(8);
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight"));
    Some((number(offset), number(len) as usize))
}

impl World {
    pub fn client_acts(&mut self) -> bool {
        let number = self.random.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[number];
        let Some(conn) = client.conn.filter(|_| !client.closed) else {
            return false;
        };
        if client.is_served() {
            client.closed = true;
            self.stack.close(conn);
            self.client_settles();
            return true;
        }
        if client.unwritten.is_empty() && client.left > 0 && client.asked.len() < client.pipeline {
            let request = Request::random(self.file_count, &mut self.random);
            client.left -= 1;
            client.unwritten = request.encode();
            client.asked.push_back(Asked {
                request,
                moment: self.files.history().moment,
            });
        }
        if client.unwritten.is_empty() {
            return false;
        }
        let taken = self
            .stack
            .write(conn, client.unwritten.clone())
            .unwrap_or(0);
        client.unwritten = client.unwritten.slice(taken..);
        self.client_settles();
        taken > 0
    }

    pub fn client_settles(&mut self) {
        loop {
            let mut idle = true;
            while let Some((conn, event)) = self.stack.poll_event() {
                idle = false;
                self.client_event(conn, event);
            }
            while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
                idle = false;
                let nic = self.nic_of(segment.dst.addr);
                let wire = &mut self.nics[nic].to_server;
                wire.send(self.now, &segment, &mut self.random);
            }
            if idle {
                return self.stack.check();
            }
        }
    }

    fn client_event(&mut self, conn: ConnId, event: Event) {
        let client = self
            .clients
            .iter_mut()
            .find(|client| client.conn == Some(conn))
            .expect("a client's connection");
        match event {
            Event::Readable => {
                while let Some(data) = self.stack.read(conn, usize::MAX) {
                    client.received.extend_from_slice(&data);
                    self.stack.consume(conn, data.len());
                }
                client.read(&self.files.history());
            }
            Event::PeerClosed => client.end(&self.files.history()),
            Event::Closed(reason) => {
                client.conn = None;
                if !client.is_served() {
                    client.end(&self.files.history());
                }
                client.outcome = Some(reason);
            }
            Event::Connected | Event::Acknowledged(_) | Event::Acceptable(_) => {}
        }
    }
}

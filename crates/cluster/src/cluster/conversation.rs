//! Conversations between a peer and the host's application. Each side knows all bytes beforehand. The application may send content of a
//! file, in the revision that is current when the conversation begins.

use super::times::Times;
use baton_host::{FileContent, FileId, SocketId};
use baton_tcp::{CloseReason, ConnId, ListenerId};
use baton_testkit::{Pattern, Random};
use bytes::Bytes;
use std::fmt::{Debug, Formatter, Result};

/// The bytes that one side of a conversation sends: the beginning of the endless repetition of `bytes`.
#[derive(Clone, Default)]
pub struct Script {
    pub bytes: Bytes,
    pub total: usize,
    /// The file and revision that the bytes are the content of.
    pub file: Option<(FileId, u32)>,
}

impl Debug for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} bytes of {:?}", self.total, self.file)
    }
}

impl Script {
    /// Returns a script of this length whose bytes differ from those of other keys.
    pub fn new(key: u64, total: usize) -> Self {
        Self::once(Pattern::new(key).bytes(total).into())
    }

    /// Returns a script that sends these bytes once.
    pub fn once(bytes: Bytes) -> Self {
        Self {
            total: bytes.len(),
            bytes,
            file: None,
        }
    }

    /// Returns the bytes from `offset` on, up to `most` or to the end of a repetition.
    fn piece(&self, offset: usize, most: usize) -> Bytes {
        let most = most.min(self.total - offset);
        let start = offset.checked_rem(self.bytes.len()).unwrap_or(0);
        self.bytes.slice(start..self.bytes.len().min(start + most))
    }
}

/// One side and its progress.
#[derive(Clone, Debug)]
pub struct Side {
    pub says: Script,
    pub expects: Script,
    pub said: usize,
    pub received: usize,
    /// Whether the side closes its direction once it has said all.
    pub half_closes: bool,
    pub shut: bool,
    /// Number of bytes received after which the side aborts.
    pub aborts_at: Option<usize>,
}

impl Side {
    fn new(says: Script, expects: Script) -> Self {
        Self {
            says,
            expects,
            said: 0,
            received: 0,
            half_closes: false,
            shut: false,
            aborts_at: None,
        }
    }

    /// Checks that `data` is what comes next.
    pub fn receive(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let expected = self.expects.piece(self.received, data.len());
            assert!(!expected.is_empty(), "no more arrives than was sent");
            let (arrived, rest) = data.split_at(expected.len());
            assert!(
                arrived == expected,
                "the bytes from {} on differ from those that were sent",
                self.received
            );
            self.received += arrived.len();
            data = rest;
        }
    }

    /// Returns the next bytes to say, at most `most`.
    pub fn next(&self, most: usize) -> Bytes {
        self.says.piece(self.said, most)
    }

    /// Returns the rest of the file, if the side says the content of one, up to the end of a repetition.
    pub fn content(&self) -> Option<FileContent> {
        let (file, revision) = self.says.file?;
        Some(FileContent {
            file,
            revision,
            file_len: self.says.bytes.len() as u64,
            offset: (self.said % self.says.bytes.len()) as u64,
            len: self.next(usize::MAX).len() as u64,
        })
    }

    pub fn has_said_all(&self) -> bool {
        self.said == self.says.total
    }

    pub fn has_received_all(&self) -> bool {
        self.received == self.expects.total
    }

    pub fn aborts(&self) -> bool {
        self.aborts_at.is_some_and(|at| self.received >= at)
    }
}

/// A connection with both of its sides.
#[derive(Debug)]
pub struct Conversation {
    pub peer: Side,
    pub server: Side,
    /// The adapter whose address the peer is connected to.
    pub adapter: usize,
    /// The peer's port, if it opens the connection.
    pub port: u16,
    /// The listener to which the host opens the connection.
    pub listener: Option<ListenerId>,
    pub conn: Option<ConnId>,
    pub socket: Option<SocketId>,
    pub server_closes_first: bool,
    /// Whether the application requests the times at which bytes were sent and received.
    pub wants_times: bool,
    pub times: Option<Times>,
    /// Whether the connection may fail.
    pub excused: bool,
    /// How the connection ended for the peer.
    pub outcome: Option<CloseReason>,
    /// Whether the application has closed its end.
    pub server_done: bool,
}

impl Conversation {
    /// Returns a conversation in which neither side aborts, and only the peer closes first.
    pub fn orderly(peer_says: Script, server_says: Script, adapter: usize) -> Self {
        Self {
            peer: Side::new(peer_says.clone(), server_says.clone()),
            server: Side::new(server_says, peer_says),
            adapter,
            port: 0,
            listener: None,
            conn: None,
            socket: None,
            server_closes_first: false,
            wants_times: false,
            times: None,
            excused: false,
            outcome: None,
            server_done: false,
        }
    }

    /// Draws how each side ends its direction.
    pub fn new(
        random: &mut Random,
        peer_says: Script,
        server_says: Script,
        adapter: usize,
    ) -> Self {
        let mut new = Self::orderly(peer_says, server_says, adapter);
        new.peer.half_closes = random.percent(50);
        new.server.half_closes = random.percent(30);
        new.server_closes_first = random.percent(50);
        new.wants_times = random.percent(30);
        for (side, percent) in [(&mut new.peer, 10), (&mut new.server, 5)] {
            let most = side.expects.total as u64 + 1;
            side.aborts_at = random.percent(percent).then(|| random.below(most) as usize);
        }
        new
    }

    pub fn is_over(&self) -> bool {
        self.server_done && self.outcome.is_some()
    }

    /// Returns whether the connection may end before everything was said.
    pub fn may_end_early(&self) -> bool {
        self.excused || self.peer.aborts_at.is_some()
    }
}

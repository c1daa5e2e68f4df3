//! The host's state of one socket. The rest of its state is on the adapter.

use super::times::Timing;
use baton_bus::Chain;
use baton_bus::descriptor::{SocketOption, Status};
use baton_wire::{Endpoint, SeqNr, Time};
use bitflags::bitflags;
use std::net::{IpAddr, Ipv4Addr};

/// An unknown endpoint.
pub(super) const NOWHERE: Endpoint = Endpoint {
    addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    port: 0,
};

/// The use of a socket number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// The number is free.
    #[default]
    Free,
    /// A connection that an ACCEPT waits for.
    Reserved,
    /// A listener.
    Listening,
    /// A connection that is being opened.
    Opening,
    /// An established connection, or one that has ended.
    Open,
    /// A socket that the application has closed and the adapter has not.
    Closing,
    /// A connection that is moving to the adapter.
    Importing,
    /// A connection that has left the adapter, whose state and data wait to be taken.
    Exported,
    /// A socket for packets.
    Packets,
}

bitflags! {
    /// Requests to submit as soon as there is space, in this order.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Intents: u8 {
        /// Set up the socket, step by step.
        const SET_UP = 1;
        /// Send the held data.
        const FLUSH = 1 << 1;
        /// Shut down sending.
        const SHUT = 1 << 2;
        /// Close the socket.
        const CLOSE = 1 << 3;
        /// Close the socket by a reset.
        const ABORT = 1 << 4;
        /// Post buffers.
        const RECEIVE = 1 << 5;
        /// Give the state to the adapter.
        const IMPORT = 1 << 6;
        /// Take the connection back, or the next part of its state.
        const EXPORT = 1 << 7;
    }
}

/// Progress of setting up a socket on the adapter: the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SetUp {
    /// SOCKET.
    #[default]
    Socket,
    /// SETSOCKOPT SHARE, of a listener that shares its address.
    Share,
    /// SETSOCKOPT FAST OPEN, of a listener that accepts it or a connection that uses it.
    FastOpen,
    /// BIND, and LISTEN after it.
    Bind,
    /// LISTEN.
    Listen,
    /// NAME, of a listener whose port the adapter chooses.
    Name,
    /// CONNECT.
    Connect,
    /// Nothing more.
    Done,
}

/// A request that the adapter has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Socket,
    /// Set an option without which the socket cannot be set up.
    SetUpOption,
    Bind,
    Listen,
    Connect,
    /// Accept connections, with the numbers from `first` on.
    Accept {
        first: u32,
        count: u16,
    },
    /// Close the socket.
    Close,
    /// Shut down sending.
    Shut,
    SetOption(SocketOption),
    Status,
    Name,
    Info,
    /// Cancel a request, for the application.
    Cancel,
    /// Cancel an ACCEPT, for a connection to open.
    Reclaim,
    /// Initialize the data cache.
    CacheInit,
    /// Insert the block in this buffer into the data cache.
    Insert {
        address: u64,
    },
    /// Import the part of a state in this buffer.
    Import {
        address: u64,
        is_last: bool,
    },
    /// Export a part of a state into this buffer.
    Export {
        address: u64,
        len: u32,
    },
    /// Send this many bytes, in a buffer, a file or inline, up to this sequence number.
    Send {
        address: Option<u64>,
        len: u32,
        end: SeqNr,
    },
    /// Process the packet in this buffer as if it had just arrived.
    Forward {
        address: u64,
    },
    Receive {
        address: u64,
        len: u32,
    },
}

impl Operation {
    /// Returns whether the answer only releases resources.
    pub fn is_releasing(self) -> bool {
        matches!(
            self,
            Self::Send { .. }
                | Self::Forward { .. }
                | Self::Close
                | Self::Shut
                | Self::Insert { .. }
        )
    }
}

/// Data of a connection that waits in the adapter, behind the data that the application has not read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Later {
    /// Number of bytes.
    pub len: usize,
    /// The peer has ended its stream behind this data.
    pub ended: bool,
    /// Why the connection has failed, although this data can still be read.
    pub error: Option<Status>,
}

/// One socket.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub phase: Phase,
    pub intents: Intents,
    pub set_up: SetUp,
    /// The remote endpoint of a connection, or where a listener listens.
    pub endpoint: Endpoint,
    /// The local endpoint of a connection, once the adapter has reported it.
    pub own: Option<Endpoint>,
    /// Why the socket is unusable.
    pub error: Option<Status>,
    /// Requests that wait for an answer: SENDs, RECVs, all others.
    pub sends: Chain,
    pub receives: Chain,
    pub control: Chain,
    /// Data that the application has not read.
    pub received: Chain,
    pub received_len: usize,
    /// Whether the last event for a reader reports only what an earlier one has reported.
    pub is_repeated: bool,
    /// What the adapter has reported about the data that follows `received`.
    pub later: Later,
    /// Data that was not given to the adapter, because of the cork or for lack of space.
    pub held: Chain,
    pub held_len: u32,
    /// Bytes in files that the adapter is to read and has not read yet.
    pub lent: u32,
    /// Sequence number after all data that was given to the socket to send. It survives the socket.
    pub given: SeqNr,
    /// Value of `given` when the connection was imported.
    pub given_before: SeqNr,
    /// TCP's information about the connection, from the adapter's answer until it is taken.
    pub info: Option<Box<[u8]>>,
    /// Number of received bytes, modulo 2^32.
    pub came: u32,
    /// Present if times are reported.
    pub timing: Option<Box<Timing>>,
    /// Whether data is lent to the socket. Its owner is then notified when the adapter no longer needs some of it.
    pub lends: bool,
    /// When the cork expires.
    pub cork_deadline: Option<Time>,
    /// Number of buffers to keep posted, including those with unread data.
    pub receive_window: u32,
    /// The application holds partial transfers back.
    pub corked: bool,
    /// The application has shut down sending.
    pub shut: bool,
    /// The peer has ended its stream.
    pub ended: bool,
    /// The value of FAST OPEN if the connection is opened with it.
    pub opens_fast: Option<u32>,
    /// The connection is to leave the adapter.
    pub exporting: bool,
    /// The connection was imported.
    pub imported: bool,
    /// No buffers are to be posted any more.
    pub no_receive: bool,
    /// The adapter does not know the socket any more, because its connection has ended or it was closed.
    pub unknown: bool,
    /// The application has not accepted the connection yet.
    pub untaken: bool,
    /// The owner was not notified yet that the adapter has refused to import the connection.
    pub untold: bool,
    /// No buffer is pledged to the socket: one is posted when the adapter has reported data.
    pub on_demand: bool,
    /// A buffer is pledged to the socket.
    pub pledged: bool,
    /// The application waits for space to send.
    pub wants_room: bool,
    /// Events for the application.
    pub readable: bool,
    pub writable: bool,
    /// Queues that contain the socket's number. They are not reset when the socket is released.
    pub queued: Queued,
}

/// Queues that contain a socket's number, each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Queued {
    /// Sockets with events.
    pub ready: bool,
    /// Sockets with requests to submit.
    pub submitting: bool,
    /// Sockets that wait for shared buffers.
    pub waiting: bool,
    /// On-demand connections with unread data that wait for a receive buffer.
    pub fetching: bool,
    /// Sockets some of whose lent data the adapter may no longer need.
    pub done_with: bool,
}

impl Default for Socket {
    fn default() -> Self {
        Self {
            phase: Phase::Free,
            intents: Intents::empty(),
            set_up: SetUp::Done,
            endpoint: NOWHERE,
            own: None,
            error: None,
            sends: Chain::default(),
            receives: Chain::default(),
            control: Chain::default(),
            received: Chain::default(),
            received_len: 0,
            is_repeated: false,
            later: Later::default(),
            held: Chain::default(),
            held_len: 0,
            lent: 0,
            given: SeqNr(0),
            given_before: SeqNr(0),
            info: None,
            came: 0,
            timing: None,
            lends: false,
            cork_deadline: None,
            receive_window: 1,
            corked: false,
            shut: false,
            ended: false,
            opens_fast: None,
            exporting: false,
            imported: false,
            no_receive: false,
            unknown: false,
            untaken: false,
            untold: false,
            on_demand: false,
            pledged: false,
            wants_room: false,
            readable: false,
            writable: false,
            queued: Queued::default(),
        }
    }
}

impl Socket {
    /// Returns whether the application may use the socket.
    pub fn is_known(&self) -> bool {
        let is_used = matches!(
            self.phase,
            Phase::Listening | Phase::Opening | Phase::Open | Phase::Exported | Phase::Packets
        );
        is_used && !self.untaken
    }

    /// Returns whether the peer has ended its stream, possibly behind unread data.
    pub fn has_ended(&self) -> bool {
        self.ended || self.later.ended
    }

    /// Returns why the connection has failed, possibly behind unread data.
    pub fn why_failed(&self) -> Option<Status> {
        self.error.or(self.later.error)
    }

    /// Returns whether the socket can still receive data.
    pub fn may_receive(&self) -> bool {
        let is_connection = match self.phase {
            Phase::Reserved | Phase::Open => true,
            Phase::Opening | Phase::Packets => self.set_up != SetUp::Socket,
            Phase::Free
            | Phase::Listening
            | Phase::Closing
            | Phase::Importing
            | Phase::Exported => false,
        };
        is_connection
            && !(self.ended
                || self.exporting
                || self.no_receive
                || self.unknown
                || self.error.is_some())
    }

    /// Returns whether a buffer has to be pledged to the socket: data may arrive, now or after the import, and no buffer is posted.
    #[inline]
    pub fn is_owed_a_buffer(&self) -> bool {
        let expects_data = self.may_receive() || self.phase == Phase::Importing;
        expects_data && !self.on_demand && self.receives.is_empty()
    }

    /// Returns whether data can be sent on the connection, now or later.
    pub fn may_send(&self) -> bool {
        matches!(self.phase, Phase::Opening | Phase::Open)
            && !(self.shut || self.exporting || self.unknown || self.why_failed().is_some())
    }

    /// Returns whether the connection is leaving the adapter or has left it: unsent data then stays here.
    pub fn is_leaving(&self) -> bool {
        self.exporting || self.phase == Phase::Exported
    }

    /// Updates the arrival time of the last byte read, after the application has read something.
    pub fn note_read(&mut self) {
        let next = SeqNr(self.came.wrapping_sub(self.received_len as u32));
        if let Some(timing) = &mut self.timing {
            timing.read(next);
        }
    }

    /// Returns whether a time was requested for the byte before `end`, so that the data after it has to go in a separate SEND.
    pub fn is_timed_at(&self, end: SeqNr) -> bool {
        let timing = self.timing.as_ref();
        timing.is_some_and(|timing| timing.ends_at(end))
    }

    /// Returns the number of requests that wait for an answer.
    pub fn operation_of(&self) -> usize {
        (self.sends.len() + self.receives.len() + self.control.len()) as usize
    }
}

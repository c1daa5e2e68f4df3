//! One socket, as the host knows it. The rest of its state is on the adapter.

use super::times::Timing;
use baton_bus::Chain;
use baton_bus::descriptor::{SocketOption, Status};
use baton_wire::{Endpoint, SeqNr, Time};
use bitflags::bitflags;
use std::net::{IpAddr, Ipv4Addr};

/// An endpoint that is not known.
pub(super) const NOWHERE: Endpoint = Endpoint {
    addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    port: 0,
};

/// What a number stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    #[default]
    Free,
    /// A connection that an ACCEPT waits for.
    Reserved,
    /// A listener.
    Listening,
    /// A connection that is being opened.
    Opening,
    /// A connection.
    Open,
    /// A socket that the application has closed and the adapter has not.
    Closing,
    /// Its connection is on its way to the adapter.
    Importing,
    /// Its connection has left the adapter, and what came with it waits to be taken.
    Exported,
    /// It sends and receives packets.
    Packets,
}

bitflags! {
    /// What is to be asked of the adapter as soon as there is room, in this order.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Intents: u8 {
        /// To make the socket, step by step.
        const SET_UP = 1;
        /// To send what is held back.
        const FLUSH = 1 << 1;
        /// To close the sending direction.
        const SHUT = 1 << 2;
        /// To close it.
        const CLOSE = 1 << 3;
        /// To close it by a reset.
        const ABORT = 1 << 4;
        /// To post buffers.
        const RECEIVE = 1 << 5;
        /// State is to be given to the adapter.
        const IMPORT = 1 << 6;
        /// The connection is to be taken back, or more of its state.
        const EXPORT = 1 << 7;
    }
}

/// How far the making of a socket on the adapter has got: what is to be asked next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SetUp {
    /// SOCKET.
    #[default]
    Socket,
    /// SETSOCKOPT FAST OPEN, of a listener that takes it and of a connection that asks for it.
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

/// What was asked of the adapter and not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Socket,
    FastOpen,
    Bind,
    Listen,
    Connect,
    /// Connections, with the numbers from `first` on.
    Accept {
        first: u32,
        count: u16,
    },
    /// To close it, as a whole.
    Close,
    /// To close the sending direction.
    Shut,
    SetOption(SocketOption),
    Status,
    Name,
    /// To take a request back, for the application.
    Cancel,
    /// To take an ACCEPT back, for a connection that is to be opened.
    Reclaim,
    /// The data cache.
    CacheInit,
    /// To put the block in this buffer into it.
    Insert {
        address: u64,
    },
    /// A part of a state, in this buffer.
    Import {
        address: u64,
        is_last: bool,
    },
    /// A part of a state into this buffer.
    Export {
        address: u64,
        len: u32,
    },
    /// To send so many bytes, in a buffer or inline, up to this sequence number.
    Send {
        address: Option<u64>,
        len: u32,
        end: SeqNr,
    },
    /// To treat the packet in this buffer as if it had just arrived.
    Forward {
        address: u64,
    },
    Receive {
        address: u64,
        len: u32,
    },
}

impl Operation {
    /// Whether the answer only gives something back.
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

/// One socket.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub phase: Phase,
    pub intents: Intents,
    pub set_up: SetUp,
    /// The other end of a connection; where a listener listens.
    pub endpoint: Endpoint,
    /// This end of a connection, once the adapter has told it.
    pub own: Option<Endpoint>,
    /// Why it is of no use any more.
    pub error: Option<Status>,
    /// Requests that wait to be answered: SENDs, RECVs, all others.
    pub sends: Chain,
    pub receives: Chain,
    pub control: Chain,
    /// What the application has not read.
    pub received: Chain,
    pub received_len: usize,
    /// What has not been given to the adapter: by the cork, or because there was no room.
    pub held: Chain,
    pub held_len: u32,
    /// The sequence number behind all that it was given to send. It survives the socket.
    pub given: SeqNr,
    /// The same when its connection came by IMPORT.
    pub given_before: SeqNr,
    /// Bytes that have been received, modulo 2^32.
    pub came: u32,
    /// Times are told.
    pub timing: Option<Box<Timing>>,
    /// Somebody keeps what it was given, and is to hear when the adapter is done with some.
    pub lends: bool,
    /// When the cork gives up.
    pub cork_deadline: Option<Time>,
    /// Buffers that are to be posted, with what waits to be read.
    pub receive_window: u32,
    /// The application holds partial transfers back.
    pub corked: bool,
    /// The application will send no more.
    pub shut: bool,
    /// The peer will send no more.
    pub ended: bool,
    /// It is opened by Fast Open.
    pub opens_fast: Option<u32>,
    /// Its connection is to leave the adapter.
    pub exporting: bool,
    /// It came by IMPORT.
    pub imported: bool,
    /// The adapter takes no buffers any more.
    pub no_receive: bool,
    /// The adapter knows it no longer: its connection is over, or it has been closed.
    pub unknown: bool,
    /// The application does not know it yet.
    pub untaken: bool,
    /// Whoever imported it has not been told that it was refused.
    pub untold: bool,
    /// A buffer is kept for it.
    pub pledged: bool,
    /// A send found no room.
    pub wants_room: bool,
    /// What the application is to be told.
    pub readable: bool,
    pub writable: bool,
    /// In which queues its number stands. They survive the socket.
    pub queued: Queued,
}

/// Queues of sockets that a number stands in, in each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Queued {
    /// Those that have something to say.
    pub ready: bool,
    /// Those that have something to ask.
    pub submitting: bool,
    /// Those that wait for what all share.
    pub waiting: bool,
    /// Those with whose data the adapter may be done.
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
            held: Chain::default(),
            held_len: 0,
            given: SeqNr(0),
            given_before: SeqNr(0),
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
            pledged: false,
            wants_room: false,
            readable: false,
            writable: false,
            queued: Queued::default(),
        }
    }
}

impl Socket {
    /// Whether the application may use it.
    pub fn is_known(&self) -> bool {
        let is_used = matches!(
            self.phase,
            Phase::Listening | Phase::Opening | Phase::Open | Phase::Exported | Phase::Packets
        );
        is_used && !self.untaken
    }

    /// Whether it is a connection on which data can still come.
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

    /// Whether a buffer is to be kept for it: data may come, now or once it is imported, and none is posted.
    pub fn is_owed_a_buffer(&self) -> bool {
        (self.may_receive() || self.phase == Phase::Importing) && self.receives.is_empty()
    }

    /// Whether it is a connection on which data can be sent now or later.
    pub fn may_send(&self) -> bool {
        matches!(self.phase, Phase::Opening | Phase::Open)
            && !(self.shut || self.exporting || self.unknown || self.error.is_some())
    }

    /// Whether its connection is leaving the adapter, or has left it: what has not been sent stays, and goes on from here.
    pub fn is_leaving(&self) -> bool {
        self.exporting || self.phase == Phase::Exported
    }

    /// The application has read something.
    pub fn note_read(&mut self) {
        let next = SeqNr(self.came.wrapping_sub(self.received_len as u32));
        if let Some(timing) = &mut self.timing {
            timing.read(next);
        }
    }

    /// Whether the byte before this number is of interest, and what follows it goes apart.
    pub fn is_timed_at(&self, end: SeqNr) -> bool {
        let timing = self.timing.as_ref();
        timing.is_some_and(|timing| timing.ends_at(end))
    }

    /// Requests that wait to be answered.
    pub fn operation_of(&self) -> usize {
        (self.sends.len() + self.receives.len() + self.control.len()) as usize
    }
}

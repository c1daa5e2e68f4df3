//! One socket of an application.

use super::export::Exporting;
use super::import::Importing;
use super::options::Options;
use super::times::Timing;
use crate::activity::Activity;
use baton_bus::Chain;
use baton_bus::descriptor::Status;
use baton_tcp::{ConnId, ListenerId};
use baton_wire::{Endpoint, Time};

/// Role and state of a socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// The socket has no connection yet, or CONNECT has failed.
    Idle,
    /// The socket listens.
    Listening(Listening),
    /// The socket is reserved by an ACCEPT, which will give it a connection.
    Reserved,
    /// The connection is being opened by the CONNECT with this tag.
    Connecting { conn: ConnId, tag: u32 },
    /// The socket has a connection.
    Connected(ConnId),
    /// The connection has ended with this status, but transfers of its data are in progress.
    Ending(Status),
    /// The state of the connection is being fetched.
    Importing,
    /// The connection has left; its state is being written to the host.
    Exported,
    /// The socket sends and receives packets.
    Packets,
}

/// State of a listening socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listening {
    /// Number of the listener in the stack.
    pub(super) id: ListenerId,
    /// Pending ACCEPTs, oldest first.
    pub(super) accepts: Chain,
    /// Maximum number of connections that wait to be accepted.
    pub(super) backlog: u32,
    /// Time since which a connection has waited for the others that the oldest ACCEPT wants.
    pub(super) since: Option<Time>,
}

/// Data to be sent. The chains are in the order of the stream: data in an earlier field comes first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    /// SENDs that have been fetched and answered but do not fit in the send buffer. On a packet socket: fetched parts of an incomplete
    /// packet, which are answered with its last part.
    pub(super) unwritten: Chain,
    /// SENDs that are being fetched.
    pub(super) fetching: Chain,
    /// SENDs that are not being fetched yet.
    pub(super) waiting: Chain,
    /// Bytes that are being fetched.
    pub(super) fetching_bytes: u32,
    /// The latest INSERT for which SENDs of this socket have waited.
    pub(super) awaited_insert: Option<u64>,
    /// Whether the last SEND announced more data.
    pub(super) more_follows: bool,
    /// On a packet socket: whether a part of a packet was refused, so that the rest of the packet is refused too.
    pub(super) skips: bool,
    /// Tag and length of the last fetched SEND, while the cumulative answer is pending.
    pub(super) owed: Option<(u32, u32)>,
}

impl Sending {
    /// Returns whether the host waits for completions: it has announced more data, and no SEND waits to be fetched.
    pub(super) fn is_waited_for(&self) -> bool {
        self.more_follows && self.waiting.is_empty()
    }

    /// Returns whether all data has been written to the connection.
    pub(super) fn is_done(&self) -> bool {
        self.unwritten.is_empty() && self.fetching.is_empty() && self.waiting.is_empty()
    }
}

/// Buffers for received data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiving {
    /// RECVs that are being filled, oldest first.
    pub(super) filling: Chain,
    /// RECVs that wait for data.
    pub(super) posted: Chain,
    /// Whether the peer has closed its sending direction.
    pub(super) peer_closed: bool,
    /// Whether the end has been reported to the host.
    pub(super) end_reported: bool,
}

/// Requests of the host to end the connection: the tags of unanswered CLOSEs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closing {
    /// Whether the host may send nothing more.
    pub(super) shut: bool,
    /// Whether the stack has been asked to close the connection.
    pub(super) begun: bool,
    /// CLOSE of the sending direction.
    pub(super) write: Option<u32>,
    /// CLOSE of both directions.
    pub(super) both: Option<u32>,
    /// CLOSE by a reset.
    pub(super) abort: Option<u32>,
}

impl Closing {
    /// Returns whether the host has closed the socket altogether.
    pub(super) fn is_whole(&self) -> bool {
        self.both.is_some() || self.abort.is_some()
    }
}

/// One socket.
#[derive(Debug)]
pub(super) struct Socket {
    /// Number that the host gave the socket.
    pub(super) number: u32,
    pub(super) phase: Phase,
    /// Address to which the socket is bound.
    pub(super) local: Option<Endpoint>,
    /// Options that have been set, if any.
    pub(super) options: Option<Box<Options>>,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    /// Number of FORWARDs that are being fetched.
    pub(super) forwarding: u32,
    pub(super) closing: Closing,
    /// Whether the connection was imported.
    pub(super) imported: bool,
    /// Whether the host was asked to take the connection back.
    pub(super) relief_asked: bool,
    /// Recent activity of the connection.
    pub(super) activity: Activity,
    /// Timestamps, if the host wants them.
    pub(super) timing: Option<Box<Timing>>,
    /// State of an import or export in progress.
    pub(super) moving: Option<Box<Moving>>,
}

/// Direction in which a connection moves.
#[derive(Debug)]
pub(super) enum Moving {
    /// To the adapter.
    Import(Importing),
    /// To the host.
    Export(Exporting),
}

impl Moving {
    /// Returns the bytes of state that are on the adapter.
    pub(super) fn state_bytes(&self) -> u32 {
        match self {
            Self::Import(importing) => importing.state_bytes(),
            Self::Export(exporting) => exporting.state_bytes,
        }
    }

    /// Returns the number of state transfers in progress.
    pub(super) fn transfers(&self) -> usize {
        match self {
            Self::Import(importing) => importing.transfers(),
            Self::Export(exporting) => exporting.transfers(),
        }
    }
}

impl Socket {
    /// Creates a socket.
    pub(super) fn new(number: u32, phase: Phase) -> Self {
        Self {
            number,
            phase,
            local: None,
            options: None,
            sending: Sending::default(),
            receiving: Receiving::default(),
            forwarding: 0,
            closing: Closing::default(),
            imported: false,
            relief_asked: false,
            activity: Activity::default(),
            timing: None,
            moving: None,
        }
    }

    /// Returns the connection, open or being opened.
    pub(super) fn conn(&self) -> Option<ConnId> {
        match self.phase {
            Phase::Connecting { conn, .. } | Phase::Connected(conn) => Some(conn),
            _ => None,
        }
    }

    /// Returns the connection, if it is open for data.
    pub(super) fn open_conn(&self) -> Option<ConnId> {
        match self.phase {
            Phase::Connected(conn) => Some(conn),
            _ => None,
        }
    }
}

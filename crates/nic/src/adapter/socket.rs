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

/// What a socket is to the network.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Nothing yet, or no longer: CONNECT has failed.
    Idle,
    /// It listens.
    Listening(Listening),
    /// An ACCEPT will make a connection of it.
    Reserved,
    /// Its connection is being opened, as the CONNECT of this tag asked for.
    Connecting { conn: ConnId, tag: u32 },
    /// It has a connection.
    Connected(ConnId),
    /// Its connection is over, as the status says; transfers of its data are still under way.
    Ending(Status),
    /// The state of its connection is being fetched.
    Importing,
    /// Its connection has left; the state is being written to the host.
    Exported,
    /// It sends and receives packets.
    Packets,
}

/// A socket that listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listening {
    /// Its number in the stack.
    pub(super) id: ListenerId,
    /// ACCEPTs that wait, oldest first.
    pub(super) accepts: Chain,
    /// Connections that may wait.
    pub(super) backlog: u32,
    /// Since when a connection has waited for the rest of those that the oldest ACCEPT wants.
    pub(super) since: Option<Time>,
}

/// What is to be sent. All that is before in this list comes before in the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    /// SENDs that have been fetched and answered, for which the send buffer has had no room. On a packet socket: parts of a packet, which
    /// have been fetched, of which there is more to come, and which are answered with its last.
    pub(super) unwritten: Chain,
    /// SENDs that are being fetched.
    pub(super) fetching: Chain,
    /// SENDs that are not being fetched yet.
    pub(super) waiting: Chain,
    /// Bytes that are being fetched.
    pub(super) fetching_bytes: u32,
    /// The last INSERT that its SENDs have waited for.
    pub(super) awaited_insert: Option<u64>,
    /// The last SEND said that more is to follow it.
    pub(super) more_follows: bool,
    /// On a packet socket: a part of a packet was refused, and so is what follows until its last.
    pub(super) skips: bool,
    /// Tag and length of the last SEND that has been fetched, while the cumulative answer is owed.
    pub(super) owed: Option<(u32, u32)>,
}

impl Sending {
    /// Whether the host waits for the completions of what it has sent: more is to follow, and nothing waits to be fetched any more.
    pub(super) fn is_waited_for(&self) -> bool {
        self.more_follows && self.waiting.is_empty()
    }

    /// Whether nothing is left to hand to the connection.
    pub(super) fn is_done(&self) -> bool {
        self.unwritten.is_empty() && self.fetching.is_empty() && self.waiting.is_empty()
    }
}

/// Where received data goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiving {
    /// RECVs that are being filled, oldest first.
    pub(super) filling: Chain,
    /// RECVs that wait for data.
    pub(super) posted: Chain,
    /// The peer will send no more.
    pub(super) peer_closed: bool,
    /// The host knows.
    pub(super) end_reported: bool,
}

/// What the host has asked for to end the connection: the tags of its CLOSEs that are not answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closing {
    /// Nothing more may be sent.
    pub(super) shut: bool,
    /// The stack closes the connection.
    pub(super) begun: bool,
    /// CLOSE of the sending direction.
    pub(super) write: Option<u32>,
    /// CLOSE of both.
    pub(super) both: Option<u32>,
    /// CLOSE by a reset.
    pub(super) abort: Option<u32>,
}

impl Closing {
    /// The host wants no more of the socket.
    pub(super) fn is_whole(&self) -> bool {
        self.both.is_some() || self.abort.is_some()
    }
}

/// One socket.
#[derive(Debug)]
pub(super) struct Socket {
    /// The host's number for it.
    pub(super) number: u32,
    pub(super) phase: Phase,
    /// Where it is bound.
    pub(super) local: Option<Endpoint>,
    /// What has been set, if anything.
    pub(super) options: Option<Box<Options>>,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    /// FORWARDs that are being fetched.
    pub(super) forwarding: u32,
    pub(super) closing: Closing,
    /// It came by IMPORT.
    pub(super) imported: bool,
    /// The host was asked to take its connection back.
    pub(super) relief_asked: bool,
    /// How busy it is.
    pub(super) activity: Activity,
    /// The host wants to know times.
    pub(super) timing: Option<Box<Timing>>,
    /// Its connection is on its way.
    pub(super) moving: Option<Box<Moving>>,
}

/// Which way a connection is moving.
#[derive(Debug)]
pub(super) enum Moving {
    /// To the adapter.
    Import(Importing),
    /// To the host.
    Export(Exporting),
}

impl Moving {
    /// Transfers of state that are under way.
    pub(super) fn transfers(&self) -> usize {
        match self {
            Self::Import(importing) => importing.transfers(),
            Self::Export(exporting) => exporting.transfers(),
        }
    }
}

impl Socket {
    /// A new one.
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

    /// Its connection, open or being opened.
    pub(super) fn conn(&self) -> Option<ConnId> {
        match self.phase {
            Phase::Connecting { conn, .. } | Phase::Connected(conn) => Some(conn),
            _ => None,
        }
    }

    /// Its connection, if data may go over it.
    pub(super) fn open_conn(&self) -> Option<ConnId> {
        match self.phase {
            Phase::Connected(conn) => Some(conn),
            _ => None,
        }
    }
}

//! One socket: where its connection lives, and what waits for it.

use super::AdapterId;
use crate::{NotOffloaded, SocketId};
use baton_tcp::{CloseReason, ConnId, Portable};
use baton_wire::{Flow, SeqNr, Span, Time};
use std::collections::VecDeque;

/// Where a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the local stack.
    Host(ConnId),
    /// On its way to the adapter, as its socket of this number.
    HandingOff(SocketId),
    /// On the adapter.
    Adapter(SocketId),
    /// On its way back.
    Restoring(SocketId),
    /// Nowhere any more.
    Ended(CloseReason),
}

impl Place {
    /// The adapter's socket, of one that is not here.
    pub(super) fn on_adapter(self) -> Option<SocketId> {
        match self {
            Self::HandingOff(id) | Self::Adapter(id) | Self::Restoring(id) => Some(id),
            Self::Host(_) | Self::Ended(_) => None,
        }
    }
}

/// How far the owner of a connection has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The sequence number behind all that it has written.
    pub sent: SeqNr,
    /// The one behind all that it has been given of what was received.
    pub received: SeqNr,
}

/// How an application has used a connection by calls that the layer has not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Times that it has sent something.
    pub requests: u32,
    /// Enqueues to the send buffer.
    pub enqueues: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// Times that it has received something.
    pub receives: u32,
}

/// What a tool shows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketState {
    /// The connection.
    pub flow: Flow,
    /// The adapter on which it came, if there is one.
    pub adapter: AdapterId,
    /// Where it is.
    pub place: Place,
    /// Since when.
    pub since: Time,
    /// Why it is not on the adapter, if it is not.
    pub why: Option<NotOffloaded>,
    /// How often it went to the adapter.
    pub handoffs: u32,
}

/// A connection is to move as soon as its peer has acknowledged what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settling {
    pub(super) since: Time,
    /// When to look whether it can move.
    pub(super) look_at: Time,
    /// From that look to the next.
    pub(super) pause: Span,
}

/// How the application wants a connection to end that is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wish {
    #[default]
    None,
    /// Nothing more is sent.
    Shutdown,
    /// The socket is no more; the connection comes to its end.
    Close,
    /// The socket is no more, and the connection is reset.
    Abort,
}

/// One socket.
#[derive(Debug)]
pub(super) struct Socket<P> {
    pub(super) flow: Flow,
    /// The only one that it may be handed to.
    pub(super) adapter: AdapterId,
    pub(super) place: Place,
    pub(super) since: Time,
    pub(super) opened_at: Time,

    /// It is to move, and has bytes under way.
    pub(super) settling: Option<Settling>,
    /// Policy does not move it before: it was to settle, and did not in time.
    pub(super) not_before: Time,
    /// What it was when it left for the adapter, until that has answered.
    pub(super) kept: Option<Box<Portable<P>>>,
    /// The sequence numbers behind what had been written and read by then.
    pub(super) left_at: Reached,
    /// Packets that came while it was on its way.
    pub(super) packets: Vec<P>,
    /// What the adapter had received before the connection came back: read before anything else.
    pub(super) early: VecDeque<P>,
    /// What the adapter had taken and its TCP had no room for: sent before anything else.
    pub(super) unsent: VecDeque<P>,
    /// What is to be done once the connection has arrived, or `unsent` is empty.
    pub(super) wish: Wish,
    /// The adapter asked for it, or the host wants it, while it was on its way there, or could not be taken back.
    pub(super) restore_wanted: bool,

    pub(super) corked: bool,
    /// The application is to be told.
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) wants_room: bool,

    /// What selection policies see.
    pub(super) requests: u32,
    pub(super) enqueues: u32,
    pub(super) bytes_sent: u64,
    pub(super) receives: u32,
    pub(super) foreseen: Option<u32>,
    pub(super) failures: u32,
    pub(super) handoffs: u32,
    /// The generation of the adapter for which the policy chose it last.
    pub(super) chosen_for: Option<u32>,
    pub(super) why: Option<NotOffloaded>,
    /// It is never handed off, for this reason.
    pub(super) stays: Option<NotOffloaded>,
}

impl<P> Socket<P> {
    pub(super) fn new(now: Time, conn: ConnId, flow: Flow, adapter: AdapterId) -> Self {
        Self {
            flow,
            adapter,
            place: Place::Host(conn),
            since: now,
            opened_at: now,
            settling: None,
            not_before: now,
            kept: None,
            left_at: Reached::default(),
            packets: Vec::new(),
            early: VecDeque::new(),
            unsent: VecDeque::new(),
            wish: Wish::None,
            restore_wanted: false,
            corked: false,
            readable: false,
            writable: false,
            wants_room: false,
            requests: 0,
            enqueues: 0,
            bytes_sent: 0,
            receives: 0,
            foreseen: None,
            failures: 0,
            handoffs: 0,
            chosen_for: None,
            why: None,
            stays: None,
        }
    }

    pub(super) fn state(&self) -> SocketState {
        SocketState {
            flow: self.flow,
            adapter: self.adapter,
            place: self.place,
            since: self.since,
            why: self.why,
            handoffs: self.handoffs,
        }
    }

    /// Whether its connection has no owner now.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.place, Place::HandingOff(_) | Place::Restoring(_))
    }

    /// Whether what is sent can go on its way. If not it waits until the connection has arrived, or what came before has gone.
    pub(super) fn can_send(&self) -> bool {
        !self.is_moving() && self.unsent.is_empty()
    }

    /// Whether the application has let go of it.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.wish, Wish::Close | Wish::Abort)
    }

    pub(super) fn go(&mut self, now: Time, place: Place) {
        self.place = place;
        self.since = now;
    }
}

//! One socket: where its connection is, and what waits for the connection.

use super::AdapterId;
use crate::{Gone, MoveReason, NotOffloaded, SocketId};
use baton_tcp::{CloseReason, ConnId, Portable};
use baton_wire::{Flow, Payload, SeqNr, Span, Time};
use std::collections::VecDeque;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the local stack.
    Host(ConnId),
    /// Moving to the adapter, where it will be this socket.
    HandingOff(SocketId),
    /// On the adapter.
    Adapter(SocketId),
    /// Moving back from the adapter.
    Restoring(SocketId),
    /// The connection has ended.
    Ended(CloseReason),
}

impl Place {
    /// Returns the adapter's socket, unless the connection is in the stack or has ended.
    pub(super) fn on_adapter(self) -> Option<SocketId> {
        match self {
            Self::HandingOff(id) | Self::Adapter(id) | Self::Restoring(id) => Some(id),
            Self::Host(_) | Self::Ended(_) => None,
        }
    }
}

/// How far the owner of a connection has written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Sequence number after the last byte written.
    pub sent: SeqNr,
    /// Sequence number after the last received byte that the owner was given.
    pub received: SeqNr,
}

/// How an application has used a connection by calls that bypass the layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Number of times that it has sent something.
    pub requests: u32,
    /// Number of enqueues to the send buffer.
    pub enqueues: u32,
    /// Number of bytes sent.
    pub bytes: u64,
    /// Number of times that it has received something.
    pub receives: u32,
    /// Number of bytes sent since it last received something, if it has.
    pub response_bytes: u64,
}

/// State of a connection, for a tool to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketState {
    /// The connection.
    pub flow: Flow,
    /// The adapter on which the connection arrived, if there is one.
    pub adapter: AdapterId,
    /// Where the connection is.
    pub place: Place,
    /// Since when the connection has been there.
    pub since: Time,
    /// Why the connection is not on the adapter, if it is not.
    pub why: Option<NotOffloaded>,
    /// How often the connection was handed off to the adapter.
    pub handoffs: u32,
    /// The peer had ended its stream when the connection was lost during a move.
    pub was_half_closed: bool,
}

/// Progress of a connection that is to move as soon as its peer has acknowledged all data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settling {
    pub(super) since: Time,
    /// When to check whether the connection can move.
    pub(super) look_at: Time,
    /// Time from that check to the next.
    pub(super) pause: Span,
    /// Whether the connection takes no more data.
    pub(super) is_closed: bool,
}

/// What the application wants to happen to a connection after its move, or after the waiting data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wish {
    #[default]
    None,
    /// Shut down sending.
    Shutdown,
    /// Close the connection. The application's socket is closed already.
    Close,
    /// Reset the connection. The application's socket is closed already.
    Abort,
}

/// One socket.
#[derive(Debug)]
pub(super) struct Socket<P> {
    pub(super) flow: Flow,
    /// The only adapter to which the connection may be handed.
    pub(super) adapter: AdapterId,
    pub(super) place: Place,
    pub(super) since: Time,
    pub(super) opened_at: Time,

    /// Present while the connection is to move and has data in flight.
    pub(super) settling: Option<Settling>,
    /// The policy does not move the connection before this time, because it did not settle in time.
    pub(super) not_before: Time,
    /// State in which the connection left for the adapter, until the adapter has answered.
    pub(super) kept: Option<Box<Portable<P>>>,
    /// Sequence numbers after the data that had been written and read when the connection left for the adapter.
    pub(super) left_at: Reached,
    /// Packets that arrived while the connection was moving.
    pub(super) packets: Vec<P>,
    /// Data that was received before the last move and not read; it is read before anything else.
    pub(super) early: VecDeque<P>,
    /// Data that the adapter had taken and its TCP had no space for, and data that the application has sent while the connection was
    /// moving; it is sent before anything else.
    pub(super) unsent: VecDeque<P>,
    /// What to do once the connection has moved, or `unsent` is empty.
    pub(super) wish: Wish,
    /// Whether a restore was requested while the connection was moving to the adapter or could not be taken back.
    pub(super) restore_wanted: bool,

    pub(super) corked: bool,
    /// Whether an event for the application is queued.
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) wants_room: bool,

    /// Counters for selection policies.
    pub(super) requests: u32,
    pub(super) enqueues: u32,
    pub(super) bytes_sent: u64,
    /// Bytes sent since the application last received something.
    pub(super) response_bytes: u64,
    pub(super) receives: u32,
    pub(super) foreseen: Option<u32>,
    pub(super) failures: u32,
    pub(super) handoffs: u32,
    /// Generation of the adapter for which the policy selected the connection last.
    pub(super) chosen_for: Option<u32>,
    pub(super) why: Option<NotOffloaded>,
    /// Why the connection moves, or has moved last.
    pub(super) reason: MoveReason,
    /// The connection is never handed off, for this reason.
    pub(super) stays: Option<NotOffloaded>,
    /// The peer had ended its stream when the connection was lost during a move.
    pub(super) was_half_closed: bool,
}

impl<P: Payload> Socket<P> {
    /// Passes waiting data to `send`, which returns how many bytes it has taken. Returns true when all data was taken.
    pub(super) fn send_unsent_by(
        &mut self,
        mut send: impl FnMut(&P) -> Result<usize, Gone>,
    ) -> bool {
        while let Some(piece) = self.unsent.front_mut() {
            let len = piece.len();
            match send(piece) {
                Ok(taken) if taken == len => {
                    self.unsent.pop_front();
                }
                Ok(taken) => {
                    *piece = piece.slice(taken, len - taken);
                    return false;
                }
                // Nothing more can be sent. An event reports why.
                Err(Gone) => self.unsent.clear(),
            }
        }
        true
    }
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
            response_bytes: 0,
            receives: 0,
            foreseen: None,
            failures: 0,
            handoffs: 0,
            chosen_for: None,
            why: None,
            reason: MoveReason::Unknown,
            stays: None,
            was_half_closed: false,
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
            was_half_closed: self.was_half_closed,
        }
    }

    /// Returns whether the connection has no owner now.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.place, Place::HandingOff(_) | Place::Restoring(_))
    }

    /// Returns whether data can be sent now. If not, it waits for the end of the move, or for earlier data.
    pub(super) fn can_send(&self) -> bool {
        let is_closed = self.settling.is_some_and(|settling| settling.is_closed);
        !self.is_moving() && !is_closed && self.unsent.is_empty()
    }

    /// Puts data that the adapter returns before the data that the application has sent since.
    pub(super) fn put_before_unsent(&mut self, pieces: impl IntoIterator<Item = P>) {
        let since = std::mem::take(&mut self.unsent);
        self.unsent.extend(pieces);
        self.unsent.extend(since);
    }

    /// Returns whether the application has closed the socket.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.wish, Wish::Close | Wish::Abort)
    }

    pub(super) fn go(&mut self, now: Time, place: Place) {
        self.place = place;
        self.since = now;
    }
}

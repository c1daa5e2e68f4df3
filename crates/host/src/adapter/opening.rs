//! Connections that the application opens.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::SocketId;
use baton_bus::descriptor::{Action, Status};
use baton_bus::link::Inline;
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};

/// Values of FAST OPEN before a CONNECT.
const WITH_COOKIE: u32 = 1;
const WITHOUT_COOKIE: u32 = 2;

impl<P: Inline> OsLayer<P> {
    /// Opens a connection. It becomes writable when it is open; when it cannot be opened it becomes readable, and
    /// [`OsLayer::error_of`] says why.
    ///
    /// # Errors
    /// There are as many sockets as may be.
    pub fn connect(&mut self, now: Time, remote: Endpoint) -> Result<SocketId, Status> {
        self.now = now;
        let number = self.take_number().ok_or(Status::TooManySockets)?;
        let entry = self.occupy(number, Phase::Opening);
        entry.endpoint = remote;
        entry.set_up = SetUp::Socket;
        self.opening.push_back(number);
        Ok(SocketId(number))
    }

    /// The same by TCP Fast Open (RFC 7413): the beginning of `data` goes with the SYN to a peer that gave a cookie before, or to any
    /// `without_cookie`; to others it goes once the connection is open, and a cookie is asked for. Gives how many bytes were taken: no
    /// more than the descriptors of one transfer hold. What goes with a SYN may come twice, on two connections (RFC 7413 2.1).
    ///
    /// # Errors
    /// As [`OsLayer::connect`].
    pub fn connect_fast_open(
        &mut self,
        now: Time,
        remote: Endpoint,
        data: &P,
        without_cookie: bool,
    ) -> Result<(SocketId, usize), Status> {
        let socket = self.connect(now, remote)?;
        let (piece, pieces) = self.config.most_with_syn();
        let most = piece * pieces.min(self.most_sends as usize);
        let most = most.min(self.config.batching.max_transfer_bytes as usize);
        let taken = data.len().min(most);
        for start in (0..taken).step_by(piece) {
            let len = piece.min(taken - start);
            self.hold_apart(socket.0, data.slice(start, len));
        }
        self.socket_mut(socket.0).opens_fast = Some(match without_cookie {
            true => WITHOUT_COOKIE,
            false => WITH_COOKIE,
        });
        Ok((socket, taken))
    }

    /// Begins with connections for which a buffer can be pledged and for which the ring has room.
    pub(super) fn begin_opening<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L) {
        while self.may_begin_opening(link)
            && let Some(number) = self.opening.pop_front()
        {
            let with_data = match self.socket(number).held.is_empty() {
                true => Intents::empty(),
                false => Intents::FLUSH,
            };
            self.intend(number, Intents::SET_UP | with_data);
            self.submit_all(now, link);
            self.settle_pledge(number);
        }
        let starves = !self.opening.is_empty() && self.spare_for_receives(link) == 0;
        if starves && !self.reclaiming {
            self.reclaim_accept(now);
        }
    }

    /// What is kept for connections that may come goes to one that is wanted now.
    fn reclaim_accept(&mut self, now: Time) {
        let listener = self.listeners.iter().find(|l| l.reserved > 0);
        let Some(listener) = listener.map(|listener| listener.number) else {
            return;
        };
        let control = self.requests.numbers(&self.socket(listener).control);
        let accepts = control.filter(|&tag| {
            let request = self.requests.get(tag);
            request.is_some_and(|request| matches!(request.operation, Operation::Accept { .. }))
        });
        if let Some(target) = accepts.last() {
            let action = Action::Cancel { target };
            self.reclaiming =
                self.request(now, listener, action, Operation::Reclaim, Urgency::Awaited);
        }
    }

    /// Whether a connection waits to be opened and can be now.
    fn may_begin_opening<L: HostLink<Data = P>>(&self, link: &L) -> bool {
        let has_room = self.submitting.is_empty() && self.queue.room() > 0;
        !self.opening.is_empty() && has_room && self.spare_for_receives(link) > 0
    }

    /// The adapter says whether a connection could be opened.
    pub(super) fn handle_connected(&mut self, number: u32, status: Status) {
        if self.socket(number).phase != Phase::Opening {
            return;
        }
        if status == Status::Ok {
            self.stats.connected += 1;
            let entry = self.socket_mut(number);
            entry.phase = Phase::Open;
            entry.wants_room = false;
            self.wake_writer(number);
            self.intend(number, Intents::RECEIVE);
        } else {
            self.fail(number, status);
        }
    }
}

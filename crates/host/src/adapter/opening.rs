//! Connections that the application opens.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::SocketId;
use baton_bus::descriptor::{Action, Status};
use baton_bus::link::Inline;
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};

/// Values of the option FAST OPEN before a CONNECT.
const WITH_COOKIE: u32 = 1;
const WITHOUT_COOKIE: u32 = 2;

impl<P: Inline> OsLayer<P> {
    /// Opens a connection. The socket becomes writable when the connection is established; if opening fails it becomes readable, and
    /// [`OsLayer::error_of`] says why.
    ///
    /// # Errors
    /// The maximum number of sockets is reached.
    pub fn connect(&mut self, now: Time, remote: Endpoint) -> Result<SocketId, Status> {
        self.now = now;
        let number = self.take_number().ok_or(Status::TooManySockets)?;
        let entry = self.occupy(number, Phase::Opening);
        entry.endpoint = remote;
        entry.set_up = SetUp::Socket;
        self.opening.push_back(number);
        Ok(SocketId(number))
    }

    /// Opens a connection with TCP Fast Open (RFC 7413): the beginning of `data` goes with the SYN to a peer that gave a cookie before, or
    /// to any peer if `without_cookie`; otherwise it follows once the connection is established, and a cookie is requested. Returns how
    /// many bytes were taken: at most what the descriptors of one transfer hold. Data with a SYN may arrive twice, on two connections (RFC
    /// 7413 2.1).
    ///
    /// # Errors
    /// The errors of [`OsLayer::connect`].
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

    /// Starts to open connections for which a buffer can be pledged and the ring has space.
    pub(super) fn begin_opening<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L) {
        while self.may_begin_opening(link)
            && let Some(number) = self.opening.pop_front()
        {
            let with_data = match self.socket(number).held.is_empty() {
                true => Intents::empty(),
                false => Intents::FLUSH,
            };
            let on_demand = self.is_on_demand(self.room_for_pledges(link));
            self.socket_mut(number).on_demand = on_demand;
            self.intend(number, Intents::SET_UP | with_data);
            self.submit_all(now, link);
            self.settle_pledge(number);
        }
        let starves = !self.opening.is_empty() && !self.has_buffers(self.room_for_pledges(link));
        if starves && !self.reclaiming {
            self.reclaim_accept(now);
        }
    }

    /// Cancels an ACCEPT, so that its buffers can be used for a connection to open.
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

    /// Returns whether a connection waits to be opened and can be opened now.
    fn may_begin_opening<L: HostLink<Data = P>>(&self, link: &L) -> bool {
        let has_room = self.submitting.is_empty() && self.queue.room() > 0;
        !self.opening.is_empty() && has_room && self.has_buffers(self.room_for_pledges(link))
    }

    /// Handles the adapter's answer to CONNECT.
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

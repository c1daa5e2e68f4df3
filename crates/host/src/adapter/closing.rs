//! Closing sockets.

use super::OsLayer;
use super::socket::{Intents, Later, Operation, Phase, SetUp};
use crate::SocketId;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_wire::Time;

impl<P: Inline> OsLayer<P> {
    /// Shuts down sending on a connection, after all data taken so far was sent. Data from the peer can still be received.
    pub fn shutdown(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        let Some(entry) = self.known(socket) else {
            return;
        };
        if entry.phase == Phase::Open && entry.may_send() {
            let entry = self.socket_mut(socket.0);
            entry.shut = true;
            entry.corked = false;
            self.intend(socket.0, Intents::SHUT);
        }
    }

    /// Closes a socket after all data taken so far was sent. Its number may be reused once the adapter has closed the socket, too.
    pub fn close(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        if self.known(socket).is_some() {
            self.let_go(socket.0, false);
        }
    }

    /// Closes a socket immediately; a connection is reset.
    pub fn abort(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        if self.known(socket).is_some() {
            self.let_go(socket.0, true);
        }
    }

    /// Closes a socket that the application has closed, or never learns of.
    pub(super) fn let_go(&mut self, number: u32, abort: bool) {
        if self.socket(number).phase == Phase::Listening {
            self.drop_listener(number);
        }
        let entry = &mut self.sockets[number as usize];
        self.pieces.clear(&mut entry.received);
        entry.received_len = 0;
        entry.later = Later::default();
        entry.readable = false;
        entry.writable = false;
        entry.wants_room = false;
        entry.corked = false;
        let never_asked = entry.set_up == SetUp::Socket;
        let abort = abort || entry.error.is_some();
        entry.phase = Phase::Closing;
        entry.intents.remove(Intents::SET_UP | Intents::RECEIVE);
        self.settle_pledge(number);
        if never_asked {
            // If the number stayed in the queue of connections to open, the next socket with this number would be opened by mistake.
            self.opening.retain(|&other| other != number);
            self.socket_mut(number).unknown = true;
        }
        let is_closed =
            self.socket(number).unknown || self.waiting_request(number, Operation::Close).is_some();
        if abort || is_closed {
            self.drop_held(number);
            self.socket_mut(number).intents = Intents::empty();
        }
        if !is_closed {
            let how = if abort {
                Intents::ABORT
            } else {
                Intents::CLOSE
            };
            self.intend(number, how);
        }
        self.finish_closing(number);
    }

    /// Removes a listener, and resets the connections that nobody has accepted.
    fn drop_listener(&mut self, number: u32) {
        let Some(index) = self.listeners.iter().position(|l| l.number == number) else {
            return;
        };
        for untaken in self.listeners.remove(index).untaken {
            self.let_go(untaken, true);
        }
        self.acceptable &= self.has_untaken();
    }

    /// Releases a socket's number when both the application and the adapter have released the socket.
    pub(super) fn finish_closing(&mut self, number: u32) {
        let entry = self.socket(number);
        if entry.phase == Phase::Closing
            && entry.unknown
            && entry.operation_of() == 0
            && !entry.untold
        {
            self.release(number);
        }
    }

    /// Marks a socket as unusable; the application finds out at its next call.
    pub(super) fn fail(&mut self, number: u32, status: Status) {
        let entry = self.socket_mut(number);
        let is_used = matches!(
            entry.phase,
            Phase::Opening | Phase::Open | Phase::Listening | Phase::Packets
        );
        if !is_used || entry.error.is_some() {
            return;
        }
        entry.error = Some(status);
        // Nothing more is delivered.
        entry.later = Later::default();
        entry.intents = Intents::empty();
        entry.wants_room = false;
        match entry.phase {
            Phase::Opening => self.stats.connects_failed += 1,
            Phase::Open => self.stats.ended_abnormally += 1,
            _ => {}
        }
        self.drop_held(number);
        self.settle_pledge(number);
        self.wake_reader(number);
    }
}

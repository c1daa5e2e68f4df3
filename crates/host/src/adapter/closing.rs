//! The ends of sockets.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::SocketId;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_wire::Time;

impl<P: Inline> OsLayer<P> {
    /// Says that nothing more will be sent on a connection, once what was taken has been. What the peer sends can still be received.
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

    /// Closes a socket, after all that was taken has been sent. Its number may be used again once the adapter is done with it.
    pub fn close(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        if self.known(socket).is_some() {
            self.let_go(socket.0, false);
        }
    }

    /// Closes a socket at once, a connection by a reset.
    pub fn abort(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        if self.known(socket).is_some() {
            self.let_go(socket.0, true);
        }
    }

    /// The application has done with a socket, or never hears of it.
    pub(super) fn let_go(&mut self, number: u32, abort: bool) {
        if self.socket(number).phase == Phase::Listening {
            self.drop_listener(number);
        }
        let entry = &mut self.sockets[number as usize];
        self.pieces.clear(&mut entry.received);
        entry.received_len = 0;
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
            // What waits to begin is in a queue of its own, where the number would be taken for its next owner.
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

    /// A listener goes, and with it the connections that nobody has taken.
    fn drop_listener(&mut self, number: u32) {
        let Some(index) = self.listeners.iter().position(|l| l.number == number) else {
            return;
        };
        for untaken in self.listeners.remove(index).untaken {
            self.let_go(untaken, true);
        }
        self.acceptable &= self.has_untaken();
    }

    /// Lets go of a socket's number when the application and the adapter both have.
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

    /// A socket is of no use any more; the application is told when it looks.
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

//! Events for the application; each change is reported once.

use super::OsLayer;
use super::socket::Phase;
use super::stats::NoRoom;
use crate::{Ready, SocketId};
use baton_bus::HostLink;
use baton_bus::link::Inline;

impl<P: Inline> OsLayer<P> {
    /// Returns the next event for the application.
    pub fn next_ready(&mut self) -> Option<Ready> {
        if std::mem::take(&mut self.acceptable) {
            return Some(Ready::Acceptable);
        }
        while let Some(&number) = self.ready.front() {
            let entry = &mut self.sockets[number as usize];
            let socket = SocketId(number);
            if std::mem::take(&mut entry.readable) {
                return Some(Ready::Readable(socket));
            }
            if std::mem::take(&mut entry.writable) {
                return Some(Ready::Writable(socket));
            }
            entry.queued.ready = false;
            self.ready.pop_front();
        }
        None
    }

    /// Returns whether [`OsLayer::next_ready`] may return something.
    pub fn has_ready(&self) -> bool {
        self.acceptable || !self.ready.is_empty()
    }

    /// Reports that there may be something to read. For connections that the application has not accepted yet, this happens when it accepts
    /// them.
    pub(super) fn wake_reader(&mut self, number: u32) {
        self.wake_reader_for(number, true);
    }

    /// Works like [`Self::wake_reader`]. `is_new` says whether there is anything that was not reported before; an event that the application
    /// has not taken yet is not repeated.
    pub(super) fn wake_reader_for(&mut self, number: u32, is_new: bool) {
        let entry = self.socket_mut(number);
        entry.is_repeated = !is_new && (!entry.readable || entry.is_repeated);
        if entry.is_known() {
            entry.readable = true;
            self.tell(number);
        }
    }

    /// Reports that there is buffer space for data.
    pub(super) fn wake_writer(&mut self, number: u32) {
        let entry = self.socket_mut(number);
        entry.wants_room = false;
        if entry.is_known() {
            entry.writable = true;
            self.tell(number);
        }
    }

    fn tell(&mut self, number: u32) {
        let queued = &mut self.socket_mut(number).queued.ready;
        if !std::mem::replace(queued, true) {
            self.ready.push_back(number);
        }
    }

    /// Makes a socket wait for space. If the ring is full, the socket queues to submit its requests. If buffers are missing, the
    /// completions of its own sends wake it; without sends in flight, it waits for free shared buffers.
    pub(super) fn wait_for_room(&mut self, number: u32, why: NoRoom) {
        self.starved = true;
        if why == NoRoom::Ring {
            return self.schedule(number);
        }
        let entry = self.socket_mut(number);
        if entry.sends.is_empty() && !std::mem::replace(&mut entry.queued.waiting, true) {
            self.waiting.push_back(number);
        }
    }

    /// Lets waiting sockets submit their requests, one socket for each free buffer. Returns true if there was such a socket.
    pub(super) fn wake_waiting<L: HostLink<Data = P>>(&mut self, link: &L) -> bool {
        let count = self.waiting.len().min(self.spare(link));
        for _ in 0..count {
            let Some(number) = self.waiting.pop_front() else {
                break;
            };
            let entry = self.socket_mut(number);
            entry.queued.waiting = false;
            if entry.wants_room || !entry.intents.is_empty() {
                self.schedule(number);
            }
        }
        count > 0
    }

    /// Wakes a writer if there is space again. Otherwise the writer keeps waiting; returns false if it waits for the ring.
    pub(super) fn wake_waiting_writer<L: HostLink<Data = P>>(
        &mut self,
        link: &L,
        number: u32,
    ) -> bool {
        let entry = self.socket(number);
        let is_free =
            entry.held.is_empty() && entry.sends.len() * 2 <= self.most_sends && !entry.is_full();
        if !entry.wants_room || entry.phase != Phase::Open || !is_free {
            return true;
        }
        let has_sends = !entry.sends.is_empty();
        match self.no_room(link, number, self.transfer_bytes(link)) {
            None => self.wake_writer(number),
            // The completions of the connection's own sends wake the writer.
            Some(_) if has_sends => {}
            Some(NoRoom::Ring) => return false,
            Some(why) => self.wait_for_room(number, why),
        }
        true
    }
}

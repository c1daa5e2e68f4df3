//! What the application is told: each change once.

use super::OsLayer;
use crate::{Ready, SocketId};
use baton_bus::HostLink;
use baton_bus::link::Inline;

impl<P: Inline> OsLayer<P> {
    /// The next thing that the application can do.
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

    /// Whether [`OsLayer::next_ready`] may have something.
    pub fn has_ready(&self) -> bool {
        self.acceptable || !self.ready.is_empty()
    }

    /// There is something to read, or to notice by reading. Of connections that it has not taken the application hears later.
    pub(super) fn wake_reader(&mut self, number: u32) {
        let entry = self.socket_mut(number);
        if entry.is_known() {
            entry.readable = true;
            self.tell(number);
        }
    }

    /// There is room for what is to be sent.
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

    /// A socket found no room. If sends of it are under way their completions go on with it; otherwise it waits for what all share.
    pub(super) fn wait_for_room(&mut self, number: u32) {
        self.starved = true;
        let entry = self.socket_mut(number);
        if entry.sends.is_empty() && !std::mem::replace(&mut entry.queued.waiting, true) {
            self.waiting.push_back(number);
        }
    }

    /// Wakes as many of those that wait for buffers or the ring as find some; true when there was one.
    pub(super) fn wake_waiting<L: HostLink<Data = P>>(&mut self, link: &L) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let room = self.queue.room() / self.config.longest_send();
        let mut woken = false;
        for _ in 0..room.min(self.spare(link)) {
            let Some(number) = self.waiting.pop_front() else {
                break;
            };
            woken = true;
            let entry = self.socket_mut(number);
            entry.queued.waiting = false;
            let (has_intents, wants_room) = (!entry.intents.is_empty(), entry.wants_room);
            if has_intents {
                self.schedule(number);
            }
            if wants_room {
                self.wake_writer(number);
            }
        }
        woken
    }
}

//! Events to the host: in order for each connection, acknowledgments gathered.

use super::{Firmware, Upcall};
use crate::cache::region::Storable;
use crate::meter::{Meter, Task};
use baton_bus::handoff::{Event, Handle, ToHost};
use baton_tcp::{CloseReason, ConnId};

impl<P: Storable> Firmware<P> {
    /// Turns what happened to connections into events to the host.
    pub(super) fn tell_events(&mut self, meter: &mut impl Meter) {
        while let Some((conn, event)) = self.stack.poll_event() {
            let Some(handle) = self.connections.handle(conn) else {
                debug_assert!(false, "every connection of the engine has a handle");
                continue;
            };
            match event {
                baton_tcp::Event::Readable => self.deliver(handle, conn, meter),
                baton_tcp::Event::Acknowledged(len) => {
                    self.gather_acknowledged(handle, conn, len, meter)
                }
                baton_tcp::Event::PeerClosed => {
                    if let Some(offloaded) = self.connections.get_mut(handle) {
                        offloaded.peer_closed = true;
                    }
                    self.deliver(handle, conn, meter);
                }
                baton_tcp::Event::Closed(reason) => self.tell_closed(handle, reason, meter),
                baton_tcp::Event::Connected | baton_tcp::Event::Acceptable(_) => {
                    debug_assert!(false, "the host establishes connections");
                }
            }
        }
    }

    /// Gives received data to the host, as far as its posted buffers go, and after all data the peer's FIN.
    pub(super) fn deliver(&mut self, handle: Handle, conn: ConnId, meter: &mut impl Meter) {
        let Some(mut posted) = self
            .connections
            .get(handle)
            .map(|offloaded| offloaded.posted)
        else {
            return;
        };
        while posted > 0
            && let Some(data) = self.stack.read(conn, posted as usize)
        {
            posted -= data.len() as u32;
            self.flush_acknowledged(handle, meter);
            self.post(Event::Receive { handle, data }, meter);
        }
        let Some(offloaded) = self.connections.get_mut(handle) else {
            return;
        };
        offloaded.posted = posted;
        if offloaded.peer_closed && self.stack.readable_len(conn) == 0 {
            offloaded.peer_closed = false;
            self.flush_acknowledged(handle, meter);
            self.post(Event::PeerClosed { handle }, meter);
        }
    }

    /// Adds to what the host will hear of as one event, and tells it when it is enough or all.
    fn gather_acknowledged(
        &mut self,
        handle: Handle,
        conn: ConnId,
        len: u32,
        meter: &mut impl Meter,
    ) {
        let Some(offloaded) = self.connections.get_mut(handle) else {
            return;
        };
        offloaded.acknowledged += len;
        if !offloaded.references.is_empty() {
            let unacknowledged = self.stack.unacknowledged(conn);
            offloaded.references.prune(unacknowledged);
        }
        let enough = offloaded.acknowledged >= self.config.acknowledge_bytes;
        if enough || self.stack.unacknowledged(conn) == 0 {
            self.flush_acknowledged(handle, meter);
        }
    }

    /// Tells the host of acknowledged bytes that it has not heard of. Goes before any other event of the connection.
    pub(super) fn flush_acknowledged(&mut self, handle: Handle, meter: &mut impl Meter) {
        let Some(offloaded) = self.connections.get_mut(handle) else {
            return;
        };
        let len = std::mem::take(&mut offloaded.acknowledged);
        if len > 0 {
            self.post(Event::Acknowledged { handle, len }, meter);
        }
    }

    fn tell_closed(&mut self, handle: Handle, reason: CloseReason, meter: &mut impl Meter) {
        self.flush_acknowledged(handle, meter);
        self.connections.end(handle);
        self.stats.closed += 1;
        self.post(Event::Closed { handle, reason }, meter);
        self.control_load(meter);
    }

    /// Asks for one connection; `None` when all that were to be asked for have gone.
    pub(super) fn ask_for_relief(&mut self, meter: &mut impl Meter) -> Option<super::Work> {
        while let Some(handle) = self.relief.pop() {
            // The handle may be free by now, or name another connection that nobody asks for.
            if self.connections.is_relief_asked(handle) {
                self.stats.relief_requests += 1;
                self.post(Event::Relief { handle }, meter);
                return Some(super::Work::Relief);
            }
        }
        None
    }

    pub(super) fn post_soft_limit(&mut self, meter: &mut impl Meter) {
        self.post(Event::SoftLimit(self.soft_limit()), meter);
    }

    /// Tells the host that there is no room for a connection.
    pub(super) fn report_memory_short(&mut self, meter: &mut impl Meter) {
        if !self.memory_short {
            self.memory_short = true;
            self.post(Event::Memory(0), meter);
        }
    }

    /// Tells the host once when there is room again.
    pub(super) fn report_memory(&mut self, meter: &mut impl Meter) {
        if !self.memory_short {
            return;
        }
        let room = self
            .memory
            .room_for_connections(self.config.connection_bytes);
        if room > 0 {
            self.memory_short = false;
            self.post(Event::Memory(room), meter);
        }
    }

    /// Posts an event to the host.
    pub(super) fn post(&mut self, event: Event<P>, meter: &mut impl Meter) {
        self.charge(Task::Event, meter);
        self.upcalls.push(Upcall {
            item: ToHost::Event(event),
            host_since: None,
        });
    }
}

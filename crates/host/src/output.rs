//! From the stack down: segments to the driver, and writers that wait for memory.

use crate::driver::PacketMbufs;
use crate::footprint;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::stats::DropReason;
use baton_bus::handoff::ToNic;
use baton_tcp::{ConnId, Segment};
use baton_wire::Payload;

impl<P: Payload> Kernel<P> {
    /// Sends one segment of the stack, if there is memory and room for it; TCP recovers from the loss otherwise.
    pub(crate) fn transmit<M: Meter>(
        &mut self,
        conn: Option<ConnId>,
        segment: Segment<P>,
        m: &mut M,
    ) {
        let id = conn.and_then(|conn| self.socket_of(conn));
        let nic = id.map_or_else(
            || self.nics.of_address(segment.src.addr),
            |id| self.sockets[id].out,
        );
        if !self.has_room(nic) {
            self.stats.drop(DropReason::TransmitQueue);
            return;
        }
        let Some(mbufs) = self.allocate_mbufs(1 + segment.payload.len()) else {
            self.stats.drop(DropReason::TransmitBuffers);
            return;
        };
        let connection = conn.map(|conn| conn.0);
        footprint::tcp_output(m, connection, &mbufs);
        if let Some(block) = connection.filter(|_| segment.sequence_len() > 0) {
            self.pcbs.sent(block, m);
        }
        footprint::ip_output(m, connection, mbufs[0]);
        self.stats.packets_sent += 1;
        if let (Some(id), Some(conn)) = (id, conn)
            && self.nics[nic].cache.is_some()
            && !segment.payload.is_empty()
        {
            self.transmit_with_cache(nic, (id, conn), segment, mbufs, m);
            return;
        }
        let entries = mbufs.len() as u32;
        self.nics[nic].driver.transmit(entries, mbufs, m);
        self.nics.post(nic, ToNic::Packet(segment));
    }

    fn allocate_mbufs(&mut self, count: usize) -> Option<PacketMbufs> {
        if (self.buffers.mbufs.available() as usize) < count {
            return None;
        }
        (0..count).map(|_| self.buffers.mbufs.allocate()).collect()
    }

    /// A writer found no buffers: it is woken when there are some again.
    pub(crate) fn wait_for_memory(&mut self, id: crate::SocketId) {
        let socket = &mut self.sockets[id];
        socket.wants_room = true;
        if !socket.waits_for_memory {
            socket.waits_for_memory = true;
            self.memory_waiters.push_back(id);
        }
    }

    /// Wakes the writer that has waited longest for memory, one for each piece of work.
    pub(crate) fn wake_memory_waiter<M: Meter>(&mut self, m: &mut M) {
        if self.memory_waiters.is_empty() || !self.buffers.has_some_for_writers() {
            return;
        }
        if self
            .files
            .cache
            .as_ref()
            .is_some_and(|cache| !cache.has_room())
        {
            return;
        }
        if let Some(id) = self.memory_waiters.pop_front() {
            let socket = &mut self.sockets[id];
            socket.waits_for_memory = false;
            if socket.in_use && socket.wants_room {
                self.wake_writer(id, m);
            }
        }
    }
}

//! Packets and offloaded data that come from the cache, on their way to the NIC (data-caching 4.3).

use super::locate::{Part, Parts};
use crate::driver::PacketMbufs;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::nics::NicId;
use crate::sockets::SocketId;
use baton_bus::handoff::{
    CacheCommand, CacheReference, CachedRun, Handle, PacketInParts, Part as Source, ToNic,
};
use baton_tcp::{ConnId, Segment};
use baton_wire::{Payload, Pieces};

impl<P: Payload> Kernel<P> {
    /// Sends a packet of a socket's connection by a NIC that has a cache: what is cached as references, in place of the data.
    ///
    /// The driver does not know a packet that is sent again. If its blocks have left the cache it is a miss as any other: they are
    /// put there again, if admission says so, from the pages that are still wired for it.
    pub(crate) fn transmit_with_cache<M: Meter>(
        &mut self,
        nic: NicId,
        (id, conn): (SocketId, ConnId),
        segment: Segment<P>,
        mbufs: PacketMbufs,
        m: &mut M,
    ) {
        let socket = &self.sockets[id];
        let first_unacknowledged = socket.bytes_sent - socket.send_len as u64;
        let distance = self.stack.send_offset(conn, segment.header.seq);
        let position = first_unacknowledged + u64::from(distance);
        let len = segment.payload_len() as u32;
        let parts = self.locate(nic, id, position, len, m);
        if parts.iter().all(|part| part.cached.is_none()) {
            let entries = mbufs.len() as u32;
            self.nics[nic].driver.transmit(entries, mbufs, m);
            self.nics.post(nic, ToNic::Packet(segment));
            return;
        }
        let entries = 1 + parts.len() as u32;
        self.nics[nic].driver.transmit(entries, mbufs, m);
        self.nics.post(nic, ToNic::Parts(in_parts(segment, &parts)));
    }

    pub(crate) fn post_cache(&mut self, nic: NicId, command: CacheCommand<P>) {
        self.nics.post(nic, ToNic::Cache(command));
    }

    /// Appends data of a file to the send buffer of an offloaded connection; it stands at `position` of all that was ever put into
    /// the socket's send buffer. The NIC sends from its cache what still stands there then; pages stay wired for the rest.
    pub(crate) fn send_offloaded<M: Meter>(
        &mut self,
        id: SocketId,
        handle: Handle,
        position: u64,
        data: P,
        m: &mut M,
    ) {
        let nic = self.sockets[id].nic;
        if self.nics[nic].cache.is_none() {
            self.command_send(handle, data, None, m);
            return;
        }
        let parts = self.locate(nic, id, position, data.len() as u32, m);
        let mut at = 0;
        for part in parts {
            let len = part.len as usize;
            self.command_send(handle, data.slice(at, len), part.cached, m);
            at += len;
        }
    }

    /// Where all that a socket has in its send buffer stands in the cache of its NIC, for a connection that goes there.
    pub(crate) fn locate_unacknowledged<M: Meter>(
        &mut self,
        id: SocketId,
        m: &mut M,
    ) -> Vec<CachedRun> {
        let socket = &self.sockets[id];
        let (nic, len) = (socket.nic, socket.send_len as u32);
        let first = socket.bytes_sent - u64::from(len);
        self.locate(nic, id, first, len, m)
            .iter()
            .map(|&Part { len, cached }| CachedRun { len, cached })
            .collect()
    }

    /// Appends data that was kept while its connection moved: the last `kept` bytes of the send buffer begin with it.
    pub(crate) fn send_kept<M: Meter>(
        &mut self,
        id: SocketId,
        handle: Handle,
        kept: usize,
        data: P,
        m: &mut M,
    ) {
        let position = self.sockets[id].bytes_sent - kept as u64;
        self.send_offloaded(id, handle, position, data, m);
    }
}

/// A packet as the NIC is to gather it: what is cached in place of the data. A part in host memory may lie in several pieces.
fn in_parts<P: Payload>(mut segment: Segment<P>, parts: &Parts) -> PacketInParts<P> {
    let mut data = Data::new(std::mem::take(&mut segment.payload));
    let mut packet = PacketInParts::new(segment);
    for &Part { len, cached } in parts {
        match cached {
            Some(CacheReference { offset, .. }) => {
                data.skip(len);
                packet.push(Source::Cache { offset, len });
            }
            None => {
                let mut left = len;
                while left > 0 {
                    let piece = data.take(left);
                    left -= piece.len() as u32;
                    packet.push(Source::Memory(piece));
                }
            }
        }
    }
    packet
}

/// A packet's data, taken from the front.
struct Data<P> {
    pieces: Pieces<P>,
    index: usize,
    /// Bytes of the piece at `index` that are gone.
    taken: usize,
}

impl<P: Payload> Data<P> {
    fn new(pieces: Pieces<P>) -> Self {
        Self {
            pieces,
            index: 0,
            taken: 0,
        }
    }

    /// At most `most` bytes, as they lie in one piece.
    fn take(&mut self, most: u32) -> P {
        let piece = &self.pieces[self.index];
        let len = (piece.len() - self.taken).min(most as usize);
        let data = piece.slice(self.taken, len);
        self.skip(len as u32);
        data
    }

    fn skip(&mut self, len: u32) {
        let mut left = len as usize;
        while left > 0 {
            let here = (self.pieces[self.index].len() - self.taken).min(left);
            left -= here;
            self.taken += here;
            if self.taken == self.pieces[self.index].len() {
                (self.index, self.taken) = (self.index + 1, 0);
            }
        }
    }
}

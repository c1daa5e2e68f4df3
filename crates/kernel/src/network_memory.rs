//! The memory that packets and sockets of a host's TCP occupy, for a stack that another component drives: buffers of the driver's rings,
//! buffers of received data that is not yet read and of written data that is not yet acknowledged, and the lists that contain connection
//! blocks.
//!
//! Buffers that wrap pages of files belong to the lender of the pages, see [`FileSystem`](crate::FileSystem).

use crate::config::Config;
use crate::driver::{Driver, PacketData, PacketMbufs};
use crate::files::SendPage;
use crate::footprint::{self, CLUSTER_BYTES, MBUF_DATA_BYTES, RECEIVE_BUFFER_BYTES, Storage};
use crate::memory::{Buffers, Slots};
use crate::meter::{Layer, Meter, Op};
use crate::pcb_lists::PcbLists;
use crate::syncache::Syncache;
use crate::time_waits::TimeWaits;
use baton_host::SocketId;
use baton_tcp::{ConnId, Handled, Segment, Stack};
use baton_wire::{Flow, Payload, SeqNr, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// The memory of a host's network code.
///
/// For each packet, call [`NetworkMemory::packet_received`], then [`NetworkMemory::segment_handled`] once the stack has processed the
/// packet (if the packet is for the stack), and finally [`NetworkMemory::packet_handled`].
#[derive(Debug)]
pub struct NetworkMemory {
    buffers: Buffers,
    /// Drivers by adapter.
    drivers: Vec<Driver>,
    blocks: PcbLists,
    /// Allocator of block numbers.
    block_slots: Slots,
    syncache: Syncache,
    time_waits: TimeWaits,
    /// Blocks of connections on adapters, which stay in their lists; `None` if a block is freed when its connection leaves the stack.
    away: Option<FxHashMap<Flow, u32>>,
    /// Connections by number.
    connections: Vec<Connection>,
    /// Buffer of the packet that is being handled, until a connection keeps the buffer.
    arriving: Option<(u32, u32)>,
    drops: NetworkDrops,
    /// The checksums that adapters compute and verify, by adapter.
    checksums: Vec<AdapterChecksums>,
}

/// TCP checksums that an adapter computes (`send`) and verifies (`receive`) for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterChecksums {
    /// Those of packets that the host sends.
    pub send: bool,
    /// Those of packets that the host receives.
    pub receive: bool,
}

/// Numbers of packets that were dropped because memory was exhausted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkDrops {
    /// Received packets for which there was no fresh buffer to replace theirs on the ring.
    pub receive_buffers: u64,
    /// Outgoing packets for which there were not enough mbufs.
    pub transmit_buffers: u64,
}

/// A receive buffer (mbuf with cluster), and where its unread data is.
#[derive(Clone, Copy, Debug)]
struct ReceiveBuffer {
    mbuf: u32,
    cluster: u32,
    offset: u32,
    len: u32,
}

/// Memory that a connection's socket holds. The queues keep their allocation when the number is reused.
#[derive(Debug, Default)]
struct Connection {
    /// Entry of the SYN cache, before the connection has a block.
    syn: Option<u32>,
    /// The block, and the connection to which it belongs.
    block: Option<(u32, Flow)>,
    /// The socket, while the application has one for the connection.
    socket: Option<SocketId>,
    /// Whether the application has closed the socket, so that received data is not kept.
    closed: bool,
    received: VecDeque<ReceiveBuffer>,
    received_len: usize,
    /// Buffers of written data: the sequence number after each buffer, its mbuf, and its cluster.
    written: VecDeque<(SeqNr, u32, Option<u32>)>,
}

impl NetworkMemory {
    /// Creates the memory of a host that receives packets from `adapters` adapters.
    pub fn new(config: &Config, adapters: u32) -> Self {
        let mut buffers = Buffers::new(config.mbufs, config.clusters);
        let drivers = (0..adapters).map(|adapter| Driver::new(config, adapter, &mut buffers));
        Self {
            drivers: drivers.collect(),
            blocks: PcbLists::new(config.hash_buckets),
            block_slots: Slots::new(u32::MAX),
            syncache: Syncache::new(),
            time_waits: TimeWaits::default(),
            away: config.keep_blocks.then(FxHashMap::default),
            connections: Vec::new(),
            arriving: None,
            drops: NetworkDrops::default(),
            checksums: vec![
                AdapterChecksums {
                    send: true,
                    receive: true
                };
                adapters as usize
            ],
            buffers,
        }
    }

    /// Sets the checksums that an adapter computes and verifies; by default all. The host does the others.
    pub fn set_checksums(&mut self, adapter: usize, checksums: AdapterChecksums) {
        self.checksums[adapter] = checksums;
    }

    /// Returns the host's buffers.
    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// Returns the numbers of free mbufs and free clusters.
    pub fn free(&self) -> (u32, u32) {
        self.buffers.free()
    }

    /// Returns the numbers of packets dropped because memory was exhausted.
    pub fn drops(&self) -> NetworkDrops {
        self.drops
    }

    // --- packets in ---

    /// Handles the arrival of a packet on an adapter. Returns false if the packet is dropped because there is no fresh buffer.
    pub fn packet_received<M: Meter>(
        &mut self,
        adapter: usize,
        frame_len: usize,
        m: &mut M,
    ) -> bool {
        let driver = &mut self.drivers[adapter];
        let slot = driver.next_entry(m);
        self.arriving = driver.receive(slot, frame_len, &mut self.buffers, m);
        match self.arriving {
            Some(packet) => {
                footprint::ip_input(m, packet);
                if !self.checksums[adapter].receive {
                    footprint::verify_checksum(m, packet.1, frame_len as u32);
                }
            }
            None => self.drops.receive_buffers += 1,
        }
        self.arriving.is_some()
    }

    /// Accounts for a segment that the stack has processed.
    pub fn segment_handled<P: Payload, M: Meter>(
        &mut self,
        stack: &Stack<P>,
        flow: &Flow,
        handled: &Handled,
        m: &mut M,
    ) {
        let bucket = self.blocks.bucket(flow);
        if let Some((_, cluster)) = self.arriving {
            footprint::tcp_lookup(m, cluster, bucket);
        }
        match handled.conn {
            Some(conn) if handled.syn && self.socket_of(conn).is_none() => {
                self.forget(conn, m);
                if let Some(block) = self.time_waits.find(flow) {
                    self.time_waits.remove(flow);
                    self.blocks.search(bucket, Some(block), m);
                    self.free_block(block, m);
                }
                self.blocks.search_listener(flow, m);
                footprint::tcp_input(m, None);
                let syn = self.syncache.add(flow, m);
                entry(&mut self.connections, conn).syn = Some(syn);
            }
            conn => {
                let block = match conn.and_then(|conn| self.take_syn(conn).zip(Some(conn))) {
                    Some((syn, conn)) => {
                        self.blocks.search_listener(flow, m);
                        self.syncache.expand(flow, syn, m);
                        let block = self.make_block(conn, flow, m);
                        footprint::tcp_open(m, block, bucket);
                        Some(block)
                    }
                    None => {
                        let block = conn.and_then(|conn| self.block_of(conn));
                        let waits = self.time_waits.find(flow).filter(|_| block.is_none());
                        self.blocks.search(bucket, block.or(waits), m);
                        footprint::tcp_input(m, block.or(waits));
                        if let Some(block) = waits {
                            self.blocks.wait(block, m);
                        }
                        if let Some(socket) = conn.and_then(|conn| self.socket_of(conn)) {
                            footprint::tcp_input_socket(m, socket.0, handled.data_len > 0);
                        }
                        block
                    }
                };
                if let Some((conn, block)) = conn.zip(block) {
                    let is_known = handled.new_ack && self.socket_of(conn).is_some();
                    let outstanding = is_known && stack.unacknowledged(conn) > 0;
                    self.blocks.received(block, handled.new_ack, outstanding, m);
                }
            }
        }
        if let Some(conn) = handled.conn
            && handled.data_len > 0
            && stack.find(flow) == Some(conn)
        {
            self.keep_received(conn, stack.readable_len(conn), m);
        }
    }

    /// Ends the handling of a packet, and frees its buffer unless a connection keeps the buffer.
    pub fn packet_handled<M: Meter>(&mut self, m: &mut M) {
        if let Some(packet) = self.arriving.take() {
            footprint::free_mbuf(m, Layer::Tcp, packet.0);
            footprint::free_cluster(m, Layer::Tcp, packet.1);
            self.buffers.release_pair(packet);
        }
    }

    /// Ends the handling of a packet for a connection that has moved; the packet is forwarded unchanged.
    pub fn packet_forwarded(&mut self) {
        if let Some(packet) = self.arriving.take() {
            self.buffers.release_pair(packet);
        }
    }

    /// Keeps the buffers of newly readable data; `readable` is the total number of readable bytes. Data that arrived out of order gets a
    /// buffer only when the gap before it closes.
    fn keep_received<M: Meter>(&mut self, conn: ConnId, readable: usize, m: &mut M) {
        let connection = entry(&mut self.connections, conn);
        if connection.closed || readable <= connection.received_len {
            return;
        }
        let mut left = (readable - connection.received_len) as u32;
        connection.received_len = readable;
        while left > 0 {
            let arrived = self.arriving.take();
            let (mbuf, cluster) = arrived.unwrap_or_else(|| self.buffers.allocate_reserved_pair());
            let len = left.min(RECEIVE_BUFFER_BYTES);
            if let Some(socket) = connection.socket {
                footprint::receive_append(m, socket.0, mbuf);
            }
            connection.received.push_back(ReceiveBuffer {
                mbuf,
                cluster,
                offset: 0,
                len,
            });
            left -= len;
        }
    }

    // --- packets out ---

    /// Accounts for a packet that the stack sends on an adapter; `pages` are the pages in the connection's send buffer. Returns false if
    /// the packet is dropped because there are not enough mbufs: one for the headers and one for each piece of data.
    pub fn transmit<P: Payload, M: Meter>(
        &mut self,
        adapter: usize,
        conn: Option<ConnId>,
        segment: &Segment<P>,
        pages: impl Iterator<Item = SendPage>,
        m: &mut M,
    ) -> bool {
        let count = 1 + segment.payload.len();
        if (self.buffers.mbufs.available() as usize) < count {
            self.drops.transmit_buffers += 1;
            return false;
        }
        let mbufs: PacketMbufs = (0..count)
            .map(|_| self.buffers.mbufs.allocate_reserved())
            .collect();
        let connection = conn.and_then(|conn| self.connections.get(conn.0 as usize));
        let block = connection.and_then(|connection| connection.block);
        let block = block.map(|(block, _)| block);
        if let Some(syn) = connection.and_then(|connection| connection.syn) {
            Syncache::respond(syn, m);
        }
        let socket = connection.and_then(|connection| connection.socket);
        footprint::tcp_output(m, block, &mbufs);
        if let Some(socket) = socket {
            footprint::tcp_output_socket(m, socket.0);
        }
        let sums = !self.checksums[adapter].send;
        if sums {
            let bytes = segment.header_len() + segment.payload_len();
            footprint::compute_checksum(m, bytes as u32);
        }
        let data = conn.map(|conn| self.refer_to_data(conn, segment, pages, sums, m));
        if let Some(block) = block.filter(|_| segment.sequence_len() > 0) {
            self.blocks.sent(block, m);
        }
        footprint::ip_output(m, block, mbufs[0]);
        self.drivers[adapter].transmit(mbufs, data.unwrap_or_default(), m);
        true
    }

    /// Finds the memory that holds a segment's data, and reads the data if `sums`, for a checksum. Walks the send buffer, which consists of written data and pages, from its head.
    fn refer_to_data<P: Payload, M: Meter>(
        &self,
        conn: ConnId,
        segment: &Segment<P>,
        pages: impl Iterator<Item = SendPage>,
        sums: bool,
        m: &mut M,
    ) -> PacketData {
        let mut data = PacketData::new();
        let len: usize = segment.payload.iter().map(Payload::len).sum();
        let connection = self.connections.get(conn.0 as usize);
        let Some(connection) = connection.filter(|_| len > 0) else {
            return data;
        };
        let mut written = connection.written.iter().peekable();
        let mut pages = pages.peekable();
        let mut next = || {
            let is_written = match (written.peek(), pages.peek()) {
                (Some((end, ..)), Some(page)) => end.before(page.end),
                (written, _) => written.is_some(),
            };
            match is_written {
                true => {
                    let &(end, mbuf, cluster) = written.next()?;
                    Some((end, mbuf, cluster.map(Storage::Cluster)))
                }
                false => {
                    let SendPage { end, frame, buffer } = pages.next()?;
                    let sf_buf = buffer.sf_buf;
                    Some((end, buffer.mbuf, Some(Storage::Page { frame, sf_buf })))
                }
            }
        };
        let mut at = segment.header.seq;
        let to = at + len as u32;
        while at.before(to)
            && let Some((end, mbuf, storage)) = next()
        {
            if end.at_or_before(at) {
                footprint::copy_passes(m, mbuf);
                continue;
            }
            let until = end.earliest(to);
            footprint::copy_of(m, mbuf, storage, until - at);
            if let Some(storage) = storage.filter(|_| sums) {
                footprint::checksum_of(m, storage, until - at, end - at);
            }
            data.extend(storage);
            at = until;
        }
        data
    }

    /// Frees the `count` oldest packets (at least one) that an adapter was given and has sent.
    pub fn transmitted<M: Meter>(&mut self, adapter: usize, count: u32, m: &mut M) {
        let driver = &mut self.drivers[adapter];
        driver.next_entry(m);
        driver.complete(count, &mut self.buffers, m);
    }

    // --- sockets ---

    /// Attaches a socket to an accepted connection, and wakes up the application if data has already arrived.
    pub fn accepted<M: Meter>(&mut self, conn: ConnId, socket: SocketId, m: &mut M) {
        let connection = entry(&mut self.connections, conn);
        connection.socket = Some(socket);
        for buffer in &connection.received {
            footprint::receive_append(m, socket.0, buffer.mbuf);
        }
        if !connection.received.is_empty() {
            footprint::wakeup(m, socket.0);
        }
    }

    /// Wakes up the application because of an event of a connection.
    pub fn wake<M: Meter>(&self, conn: ConnId, m: &mut M) {
        if let Some(socket) = self.socket_of(conn) {
            footprint::wakeup(m, socket.0);
        }
    }

    /// Frees `len` bytes that the application reads.
    pub fn read<M: Meter>(&mut self, conn: ConnId, socket: SocketId, len: u32, m: &mut M) {
        footprint::receive_drop(m, socket.0);
        let block = self.block_of(conn);
        let connection = entry(&mut self.connections, conn);
        let mut copied = 0;
        while copied < len
            && let Some(buffer) = connection.received.front_mut()
        {
            let run = buffer.len.min(len - copied);
            footprint::copy_out(m, socket.0, buffer.cluster, buffer.offset, run, copied);
            buffer.offset += run;
            buffer.len -= run;
            copied += run;
            if buffer.len == 0 {
                let pair = (buffer.mbuf, buffer.cluster);
                connection.received.pop_front();
                footprint::free_mbuf(m, Layer::Syscall, pair.0);
                footprint::free_cluster(m, Layer::Syscall, pair.1);
                self.buffers.release_pair(pair);
            }
        }
        connection.received_len -= copied as usize;
        if let Some(block) = block {
            footprint::tcp_window(m, block);
        }
    }

    /// Accounts for `len` bytes that the application writes, from sequence number `from` on. Returns the number of bytes for which there is
    /// memory.
    pub fn write<M: Meter>(
        &mut self,
        conn: ConnId,
        socket: SocketId,
        (from, len): (SeqNr, u32),
        m: &mut M,
    ) -> u32 {
        let connection = entry(&mut self.connections, conn);
        let mut copied = 0;
        while copied < len {
            let left = len - copied;
            let buffers = &mut self.buffers;
            let fresh = match left <= MBUF_DATA_BYTES {
                true => buffers.allocate_mbuf_for_writer().map(|mbuf| (mbuf, None)),
                false => buffers
                    .allocate_pair_for_writer()
                    .map(|(mbuf, cluster)| (mbuf, Some(cluster))),
            };
            let Some((mbuf, cluster)) = fresh else {
                break;
            };
            let run = left.min(CLUSTER_BYTES);
            footprint::copy_in(m, socket.0, mbuf, cluster, copied, run);
            copied += run;
            connection.written.push_back((from + copied, mbuf, cluster));
        }
        if copied > 0 {
            footprint::send_append(m, socket.0);
        }
        copied
    }

    /// Frees the buffers of acknowledged data; `is_acknowledged` reports whether all data before a sequence number is acknowledged.
    pub fn acknowledged<M: Meter>(
        &mut self,
        conn: ConnId,
        is_acknowledged: impl Fn(SeqNr) -> bool,
        m: &mut M,
    ) {
        let connection = entry(&mut self.connections, conn);
        if let Some(socket) = connection.socket {
            footprint::send_drop(m, socket.0);
        }
        while let Some((_, mbuf, cluster)) = connection
            .written
            .pop_front_if(|(end, ..)| is_acknowledged(*end))
        {
            footprint::free_mbuf(m, Layer::Socket, mbuf);
            if let Some(cluster) = cluster {
                footprint::free_cluster(m, Layer::Socket, cluster);
            }
            self.buffers.release(mbuf, cluster);
        }
    }

    /// Frees the received data of a connection that the application has closed and that still exists.
    pub fn closed_by_application(&mut self, conn: ConnId) {
        let connection = entry(&mut self.connections, conn);
        connection.closed = true;
        for buffer in connection.received.drain(..) {
            self.buffers.release_pair((buffer.mbuf, buffer.cluster));
        }
    }

    // --- connections ---

    /// Releases a connection that has ended. `waits` returns the end of its TIME-WAIT, if it is in that state.
    ///
    /// The cost of tearing the connection down is charged now, because a run ends before a TIME-WAIT of a minute does.
    pub fn closed<M: Meter>(
        &mut self,
        conn: ConnId,
        now: Time,
        waits: impl FnOnce(&Flow) -> Option<Time>,
        m: &mut M,
    ) {
        self.free_waited(now, m);
        if let Some((block, flow)) = entry(&mut self.connections, conn).block.take() {
            footprint::tcp_close(m);
            self.free_block_after(block, &flow, waits(&flow), m);
        }
        if !entry(&mut self.connections, conn).closed {
            self.wake(conn, m);
        }
        self.forget(conn, m);
    }

    /// Moves the connection of a socket from the stack to an adapter, where it gets number `handle`, or `None` if the handoff does not
    /// succeed.
    pub fn handed_off<M: Meter>(
        &mut self,
        conn: ConnId,
        (socket, handle): (SocketId, Option<u32>),
        m: &mut M,
    ) {
        let block = self.block_and_bucket(conn);
        if let Some((handle, (block, bucket))) = handle.zip(block) {
            footprint::hand_off(m, block, socket.0, handle, bucket);
        }
        if let Some(away) = &mut self.away
            && let Some((block, flow)) = entry(&mut self.connections, conn).block.take()
        {
            self.blocks.stop_timers(block, m);
            away.insert(flow, block);
        }
        self.forget(conn, m);
    }

    /// Releases the block of a connection that has ended on an adapter. If it is in TIME-WAIT on the adapter until `until`, it keeps its
    /// block until then.
    pub fn ended_elsewhere<M: Meter>(
        &mut self,
        flow: &Flow,
        now: Time,
        until: Option<Time>,
        m: &mut M,
    ) {
        self.free_waited(now, m);
        let away = self.away.as_mut();
        if let Some(block) = away.and_then(|away| away.remove(flow)) {
            self.free_block_after(block, flow, until, m);
        }
    }

    /// Moves a connection back to the stack, with `readable` bytes to be read.
    pub fn handed_back<M: Meter>(
        &mut self,
        (conn, flow): (ConnId, &Flow),
        (socket, handle): (SocketId, Option<u32>),
        readable: usize,
        m: &mut M,
    ) {
        self.forget(conn, m);
        let bucket = self.blocks.bucket(flow);
        let block = self.make_block(conn, flow, m);
        if let Some(handle) = handle {
            footprint::hand_back(m, block, socket.0, handle, bucket);
        }
        entry(&mut self.connections, conn).socket = Some(socket);
        self.keep_received(conn, readable, m);
    }

    /// Frees everything that a connection holds, so that its number can be reused. If its handshake failed, nothing is freed earlier.
    fn forget<M: Meter>(&mut self, conn: ConnId, m: &mut M) {
        let connection = entry(&mut self.connections, conn);
        if let Some(syn) = connection.syn.take() {
            self.syncache.remove(syn, m);
        }
        if let Some((block, _)) = connection.block.take() {
            self.blocks.remove(block, m);
            self.block_slots.release(block);
        }
        for buffer in connection.received.drain(..) {
            self.buffers.release_pair((buffer.mbuf, buffer.cluster));
        }
        for (_, mbuf, cluster) in connection.written.drain(..) {
            self.buffers.release(mbuf, cluster);
        }
        (connection.socket, connection.closed) = (None, false);
        connection.received_len = 0;
    }

    /// Creates a connection's block and adds it to the lists.
    fn make_block<M: Meter>(&mut self, conn: ConnId, flow: &Flow, m: &mut M) -> u32 {
        let kept = self.away.as_mut().and_then(|away| away.remove(flow));
        let block = kept.unwrap_or_else(|| {
            let block = self.block_slots.allocate_reserved();
            self.blocks.insert(block, self.blocks.bucket(flow), m);
            block
        });
        entry(&mut self.connections, conn).block = Some((block, *flow));
        block
    }

    /// Frees the blocks whose TIME-WAIT is over.
    fn free_waited<M: Meter>(&mut self, now: Time, m: &mut M) {
        while let Some(block) = self.time_waits.poll_over(now) {
            m.run(Op::TcpTimer, 1);
            self.free_block(block, m);
        }
    }

    /// Frees a block now, or when its TIME-WAIT ends.
    fn free_block_after<M: Meter>(
        &mut self,
        block: u32,
        flow: &Flow,
        until: Option<Time>,
        m: &mut M,
    ) {
        match until {
            Some(until) => {
                self.blocks.wait(block, m);
                self.time_waits.add(*flow, block, until);
            }
            None => self.free_block(block, m),
        }
    }

    /// Removes a block from the lists and frees it.
    fn free_block<M: Meter>(&mut self, block: u32, m: &mut M) {
        let bucket = self.blocks.bucket_of(block);
        self.blocks.remove(block, m);
        if let Some(bucket) = bucket {
            footprint::tcp_free(m, block, bucket);
        }
        self.block_slots.release(block);
    }

    fn take_syn(&mut self, conn: ConnId) -> Option<u32> {
        self.connections.get_mut(conn.0 as usize)?.syn.take()
    }

    fn block_of(&self, conn: ConnId) -> Option<u32> {
        let (block, _) = self.connections.get(conn.0 as usize)?.block?;
        Some(block)
    }

    fn block_and_bucket(&self, conn: ConnId) -> Option<(u32, u32)> {
        let block = self.block_of(conn)?;
        Some(block).zip(self.blocks.bucket_of(block))
    }

    fn socket_of(&self, conn: ConnId) -> Option<SocketId> {
        self.connections.get(conn.0 as usize)?.socket
    }

    /// Asserts that each buffer has an owner, given the number of mbufs that are lent with pages.
    pub fn check(&self, with_pages: usize) {
        self.buffers.check();
        self.blocks.check();
        self.block_slots.check();
        self.syncache.check();
        let blocks = self.connections.iter().filter(|c| c.block.is_some());
        let away = self.away.as_ref().map_or(0, FxHashMap::len);
        let blocks = blocks.count() + self.time_waits.len() + away;
        assert_eq!(blocks, self.block_slots.in_use() as usize);
        let syns = self.connections.iter().filter(|c| c.syn.is_some());
        assert_eq!(syns.count(), self.syncache.in_use() as usize);
        assert!(self.arriving.is_none(), "no packet is being handled");
        let mbufs: usize = self.drivers.iter().map(Driver::mbufs_held).sum();
        let clusters: usize = self.drivers.iter().map(Driver::clusters_held).sum();
        let (mut mbufs, mut clusters) = (mbufs + with_pages, clusters);
        for connection in &self.connections {
            let received: usize = (connection.received.iter())
                .map(|buffer| buffer.len as usize)
                .sum();
            assert_eq!(
                received, connection.received_len,
                "unread bytes have buffers"
            );
            mbufs += connection.received.len() + connection.written.len();
            let written = connection.written.iter();
            clusters += connection.received.len();
            clusters += written.filter(|(.., cluster)| cluster.is_some()).count();
        }
        let in_use = (
            self.buffers.mbufs.in_use() as usize,
            self.buffers.clusters.in_use() as usize,
        );
        assert_eq!((mbufs, clusters), in_use, "mbufs and clusters in use");
        let mapped = self.buffers.sf_bufs.in_use() as usize;
        assert_eq!(with_pages, mapped, "each page lent is mapped");
    }
}

fn entry(connections: &mut Vec<Connection>, conn: ConnId) -> &mut Connection {
    let index = conn.0 as usize;
    if index >= connections.len() {
        connections.resize_with(index + 1, Connection::default);
    }
    &mut connections[index]
}

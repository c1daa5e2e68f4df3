//! From the driver up: packets and stack events into sockets.

use crate::files::FilePage;
use crate::footprint::{self, RECEIVE_BUFFER_BYTES};
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::nics::NicId;
use crate::socket::{Mode, ReceiveBuffer, SendBuffer, Storage};
use crate::sockets::SocketId;
use crate::stats::DropReason;
use baton_tcp::{CloseReason, ConnId, Event, ListenerId, Segment, State};
use baton_wire::{Payload, Time};

impl<P: Payload> Kernel<P> {
    /// A packet that a NIC passed to the host, in ring entry `ring_slot`.
    pub(crate) fn receive_packet<M: Meter>(
        &mut self,
        now: Time,
        nic: NicId,
        ring_slot: u32,
        segment: Segment<P>,
        m: &mut M,
    ) {
        let driver = &mut self.nics[nic].driver;
        let Some(packet) = driver.receive(ring_slot, segment.frame_len(), &mut self.buffers, m)
        else {
            self.stats.drop(DropReason::ReceiveBuffers);
            return;
        };
        footprint::ip_input(m, packet);
        let flow = segment.flow_at_receiver();
        if let Some(&handle) = self.flows.get(&flow) {
            self.packet_of_absent(handle, segment, m);
            self.buffers.release_pair(packet);
            return;
        }
        self.arriving = Some(packet);
        footprint::tcp_lookup(m, packet.1, self.bucket(&flow));
        self.segment_to_stack(now, segment, m);
        self.settle(now, m);
        if let Some(packet) = self.arriving.take() {
            footprint::free_mbuf(m, crate::Layer::Tcp, packet.0);
            self.buffers.release_pair(packet);
        }
    }

    /// TCP input. What follows from it is left to [`Kernel::settle`].
    pub(crate) fn segment_to_stack<M: Meter>(&mut self, now: Time, segment: Segment<P>, m: &mut M) {
        let flow = segment.flow_at_receiver();
        let handled = self.stack.handle_segment(now, segment);
        self.stats.packets_received += 1;
        let bucket = self.bucket(&flow);
        match handled.conn {
            Some(conn) if handled.syn && self.socket_of(conn).is_none() => {
                self.pcbs.search(bucket, None, m);
                self.pcbs.insert(conn.0, bucket, m);
                footprint::tcp_open(m, conn.0, bucket);
            }
            conn => {
                let block = conn
                    .map(|conn| conn.0)
                    .filter(|&block| self.pcbs.holds(block));
                self.pcbs.search(bucket, block, m);
                footprint::tcp_input(m, block);
                if let Some(block) = block {
                    let socket = conn.and_then(|conn| self.socket_of(conn));
                    let outstanding = socket.is_some_and(|id| self.sockets[id].send_len > 0);
                    self.pcbs.received(block, handled.new_ack, outstanding, m);
                }
            }
        }
        if let Some(refusal) = handled.refused {
            self.stats.drop(refusal.into());
        }
    }

    /// Something happened to a connection in the stack. One that the backlog has kept from getting a socket is looked at
    /// when it gets one.
    pub(crate) fn handle_stack_event<M: Meter>(
        &mut self,
        now: Time,
        conn: ConnId,
        event: Event,
        m: &mut M,
    ) {
        if let Event::Acceptable(listener) = event {
            self.take_established(now, listener, m);
            return;
        }
        if let Event::Closed(_) = event {
            self.pcbs.remove(conn.0, m);
        }
        let Some(id) = self.socket_of(conn) else {
            return;
        };
        match event {
            Event::Readable => self.read_stack(id, conn, m),
            Event::Acknowledged(len) => self.acknowledged(id, len, m),
            Event::PeerClosed => self.peer_closed(id, m),
            Event::Closed(reason) => {
                footprint::tcp_close(m, conn.0, self.bucket(&self.sockets[id].flow));
                self.set_socket_of(conn, None);
                self.connection_over(id, reason, m);
            }
            Event::Connected | Event::Acceptable(_) => {
                debug_assert!(false, "the host opens no connections")
            }
        }
    }

    /// Makes sockets of established connections, as far as the accept queue has room.
    pub(crate) fn take_established<M: Meter>(
        &mut self,
        now: Time,
        listener: ListenerId,
        m: &mut M,
    ) {
        while self.accept_queue.len() < self.config.backlog as usize {
            let Some(conn) = self.stack.accept(listener) else {
                return;
            };
            let flow = self.stack.flow(conn);
            let nic = self.nics.of_address(flow.local.addr);
            let id = self.sockets.insert(conn, flow, nic, now);
            footprint::socket_create(m, id.0);
            self.set_socket_of(conn, Some(id));
            self.count_mode(Mode::Host(conn), |n| *n += 1);
            self.stats.opened += 1;
            self.accept_queue.push_back(id);
            self.established.push(id);
            self.catch_up(id, conn, m);
        }
    }

    /// Takes what the stack has for a connection whose events went to nobody, or to its former owner.
    pub(crate) fn catch_up<M: Meter>(&mut self, id: SocketId, conn: ConnId, m: &mut M) {
        self.read_stack(id, conn, m);
        let state = self.stack.state(conn);
        let fin_received = matches!(
            state,
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait
        );
        if fin_received {
            self.peer_closed(id, m);
        }
    }

    fn read_stack<M: Meter>(&mut self, id: SocketId, conn: ConnId, m: &mut M) {
        let mut any = false;
        while let Some(data) = self.stack.read(conn, usize::MAX) {
            if self.sockets[id].closed {
                continue;
            }
            self.append_received(id, data, false, m);
            any = true;
        }
        if any {
            self.wake_reader(id, m);
        }
    }

    /// Appends data to the receive buffer, in the buffers it arrived in: the packet's, or those that the NIC filled by DMA.
    /// Out-of-order data is not modelled as holding buffers of its own; it gets them when the gap before it closes.
    pub(crate) fn append_received<M: Meter>(
        &mut self,
        id: SocketId,
        data: P,
        by_dma: bool,
        m: &mut M,
    ) {
        let socket = &mut self.sockets[id];
        let mut left = data.len() as u32;
        socket.receive_len += data.len();
        while left > 0 {
            let arrived = self.arriving.take();
            let (mbuf, cluster) = arrived.unwrap_or_else(|| self.buffers.allocate_reserved_pair());
            let len = left.min(RECEIVE_BUFFER_BYTES);
            if by_dma {
                footprint::received_by_dma(m, cluster, len);
            }
            footprint::receive_append(m, id.0, mbuf);
            socket.receive_buffers.push_back(ReceiveBuffer {
                mbuf,
                cluster,
                offset: 0,
                len,
            });
            left -= len;
        }
        let joined = socket
            .receive
            .back_mut()
            .is_some_and(|last| last.try_append(&data));
        if !joined {
            socket.receive.push_back(data);
        }
    }

    /// The peer acknowledged `len` bytes: their buffers are freed, and a writer that waits may go on.
    pub(crate) fn acknowledged<M: Meter>(&mut self, id: SocketId, len: u32, m: &mut M) {
        footprint::send_drop(m, id.0);
        self.release_sent(id, len, m);
        let socket = &self.sockets[id];
        let enough = (self.config.send_low_water_bytes as usize).min(self.send_limit);
        if socket.wants_room && self.send_limit - socket.send_len >= enough {
            self.wake_writer(id, m);
        }
    }

    /// Frees the buffers of the oldest `len` bytes of the send buffer.
    pub(crate) fn release_sent<M: Meter>(&mut self, id: SocketId, len: u32, m: &mut M) {
        let socket = &mut self.sockets[id];
        debug_assert!(
            len as usize <= socket.send_len,
            "no more is acknowledged than was sent"
        );
        let mut left = len.min(socket.send_len as u32);
        socket.send_len -= left as usize;
        while left > 0 {
            let socket = &mut self.sockets[id];
            let buffer = socket
                .send_buffers
                .front_mut()
                .expect("unacknowledged bytes have buffers");
            if buffer.len > left {
                buffer.len -= left;
                buffer.skipped += left;
                return;
            }
            left -= buffer.len;
            let buffer = *buffer;
            let mbuf = buffer.mbuf;
            socket.send_buffers.pop_front();
            footprint::free_mbuf(m, crate::Layer::Socket, mbuf);
            self.buffers.mbufs.release(mbuf);
            match buffer.storage {
                Storage::Internal => {}
                Storage::Cluster(cluster) => self.buffers.clusters.release(cluster),
                Storage::Page(page) => footprint::free_page(m, mbuf, page),
                Storage::File(page) => self.release_page(id, page, &buffer, m),
            }
        }
    }

    /// A run of a page was acknowledged as a whole.
    fn release_page<M: Meter>(
        &mut self,
        id: SocketId,
        page: FilePage,
        buffer: &SendBuffer,
        m: &mut M,
    ) {
        footprint::free_page(m, buffer.mbuf, page.frame);
        self.files.unwire(page.frame);
        self.release_blocks(id, page, buffer, m);
    }

    /// The peer will send no more.
    pub(crate) fn peer_closed<M: Meter>(&mut self, id: SocketId, m: &mut M) {
        // A new owner of the connection may tell again what the old one told.
        if !std::mem::replace(&mut self.sockets[id].peer_closed, true) {
            self.wake_reader(id, m);
        }
    }

    /// The connection is over for both sides' owners. The socket goes too, unless the application still has it.
    pub(crate) fn connection_over<M: Meter>(
        &mut self,
        id: SocketId,
        reason: CloseReason,
        m: &mut M,
    ) {
        self.stats.closed += 1;
        self.stats.closed_abnormally += u64::from(reason != CloseReason::Normal);
        let dropped = self.sockets[id].deferred.len();
        for _ in 0..dropped {
            self.stats.drop(DropReason::ConnectionEnded);
        }
        let socket = &mut self.sockets[id];
        socket.deferred.clear();
        socket.deferred_packets = 0;
        let unacknowledged = socket.send_len as u32;
        self.release_sent(id, unacknowledged, m);
        self.drop_kept_pages(id);
        self.set_mode(id, Mode::Closed(reason));
        if self.sockets[id].closed {
            self.free_socket(id, m);
        } else {
            self.wake_reader(id, m);
        }
    }

    /// Drops what the application did not read.
    pub(crate) fn drop_received(&mut self, id: SocketId) {
        let socket = &mut self.sockets[id];
        socket.receive.clear();
        socket.receive_len = 0;
        for buffer in socket.receive_buffers.drain(..) {
            self.buffers.release_pair((buffer.mbuf, buffer.cluster));
        }
    }

    /// Both the application and TCP are done with it.
    pub(crate) fn free_socket<M: Meter>(&mut self, id: SocketId, m: &mut M) {
        footprint::socket_free(m, id.0);
        self.drop_received(id);
        self.drop_kept_pages(id);
        self.sockets.remove(id);
    }
}

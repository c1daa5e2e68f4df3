//! RECV: moves received data to the buffers that the host has posted, in order.

use super::closing::status_of;
use super::dma::Job;
use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::descriptor::{Buffer, Outcome, Response, Status};
use baton_bus::link::{Inline, embed};
use baton_tcp::{CloseReason, ConnId};
use baton_wire::{Payload, Time};

/// A RECV.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receive {
    pub(super) tag: u32,
    pub(super) address: u64,
    /// Size of the buffer, bytes.
    pub(super) len: u32,
    /// Bytes of data read for this buffer.
    filled: u32,
    /// Transfers of this data that have not completed.
    pub(super) under_way: u32,
    /// Arrival time of the last byte, if the host wants to know it.
    arrived: Option<Time>,
}

impl Receive {
    pub(super) fn new(tag: u32, address: u64, len: u32) -> Self {
        Self {
            tag,
            address,
            len,
            filled: 0,
            under_way: 0,
            arrived: None,
        }
    }

    /// Marks the buffer as being filled with `len` bytes in one transfer.
    pub(super) fn fill_with(&mut self, len: u32) {
        self.filled = len;
        self.under_way = 1;
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes RECV, which is answered once the buffer holds data, or once no more data can arrive. RECVs may be posted before the socket
    /// is connected.
    pub(super) fn receive(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        receive: Receive,
    ) -> Result<(), Status> {
        let socket = &mut self.sockets[slot as usize];
        match socket.phase {
            Phase::Reserved | Phase::Connecting { .. } => {}
            Phase::Connected(_) if socket.moving.is_none() => {}
            Phase::Packets => return self.post_packet_buffer(work, slot, receive),
            // The end is reported after the data that is still being transferred.
            Phase::Ending(_) if !socket.receiving.filling.is_empty() => {}
            Phase::Ending(Status::Ok) => return Err(Status::EndOfStream),
            Phase::Ending(status) => return Err(status),
            Phase::Idle
            | Phase::Listening(_)
            | Phase::Connected(_)
            | Phase::Importing
            | Phase::Exported => return Err(Status::WrongState),
        }
        let receiving = &mut socket.receiving;
        if receiving.end_reported {
            return Err(Status::EndOfStream);
        }
        if socket.closing.is_whole() {
            return Err(Status::Cancelled);
        }
        if receive.len == 0 {
            return Err(Status::BadValue);
        }
        if receiving.posted.len() + receiving.filling.len() >= work.shared.config.most_receives {
            return Err(Status::TooManyRequests);
        }
        self.receives.push(&mut receiving.posted, receive);
        self.deliver(work, slot);
        Ok(())
    }

    /// Moves received data to posted buffers.
    pub(super) fn deliver(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &self.sockets[slot as usize];
        let stays = !socket.closing.is_whole() && socket.moving.is_none();
        let Some(conn) = socket.open_conn().filter(|_| stays) else {
            return;
        };
        while !self.sockets[slot as usize].receiving.posted.is_empty()
            && work.stack.readable_len(conn) > 0
        {
            if !self.deliver_inline(work, slot, conn) {
                self.begin_fill(work, slot, conn);
            }
        }
        self.report_end_when_delivered(work, slot);
    }

    /// Requests transfers that fill the oldest posted buffer. Data in several pieces takes one transfer for each piece.
    fn begin_fill(&mut self, work: &mut Work<'_, P>, slot: u32, conn: ConnId) {
        let receiving = &mut self.sockets[slot as usize].receiving;
        let moved = self
            .receives
            .move_front(&mut receiving.posted, &mut receiving.filling);
        let Some(key) = moved else { return };
        while let Some(receive) = self.receives.get_mut(key) {
            let (at, room) = (receive.filled, receive.len - receive.filled);
            let Some(data) = work.stack.read(conn, room as usize) else {
                return;
            };
            let timing = self.sockets[slot as usize].timing.as_deref();
            receive.arrived = timing.and_then(|timing| timing.arrival(work.stack, conn));
            receive.filled += data.len() as u32;
            receive.under_way += 1;
            let address = receive.address + u64::from(at);
            self.ask_write(Job::Write { slot, receive: key }, address, data);
            if !P::IS_BYTES {
                // The connection has already joined everything that fits in one buffer.
                return;
            }
        }
    }

    /// Answers the oldest RECV with the data inside the response, if all unread data fits there. Returns false if it does not fit or has to
    /// wait for transfers.
    fn deliver_inline(&mut self, work: &mut Work<'_, P>, slot: u32, conn: ConnId) -> bool {
        let most = work.shared.config.most_inline as usize;
        let unread = work.stack.readable_len(conn);
        let receiving = &mut self.sockets[slot as usize].receiving;
        if unread > most || !receiving.filling.is_empty() {
            return false;
        }
        let fits = |receive: &&Receive| unread <= receive.len as usize;
        let Some(receive) = self.receives.front(&receiving.posted).filter(fits) else {
            return false;
        };
        let tag = receive.tag;
        let whole = |data: &P| data.len() == unread;
        let Some(data) = work.stack.peek(conn, 0, unread).filter(whole) else {
            return false;
        };
        self.receives.pop(&mut receiving.posted);
        let taken = work.stack.read(conn, unread);
        debug_assert_eq!(taken.as_ref(), Some(&data));
        let timing = self.sockets[slot as usize].timing.as_deref();
        let arrived = timing.and_then(|timing| timing.arrival(work.stack, conn));
        work.stack.consume(conn, unread);
        self.stats.inline_bytes += unread as u64;
        self.tell_arrival(work.now, slot, arrived);
        self.answer_inline(work, slot, tag, &data);
        self.count_received(unread as u32);
        true
    }

    fn answer_inline(&mut self, work: &mut Work<'_, P>, slot: u32, tag: u32, data: &P) {
        let len = data.len() as u16;
        let response = Response {
            socket: self.sockets[slot as usize].number,
            tag,
            status: Status::Ok,
            outcome: Outcome::Received(Buffer::Inline { len }),
        };
        self.respond_inline(work.now, &response, |head, entry| embed(data, head, entry));
    }

    /// Processes a completed transfer to a RECV's buffer. RECVs are answered in order, each when all of its data has been transferred.
    pub(super) fn written(&mut self, work: &mut Work<'_, P>, slot: u32, key: u32) {
        if let Some(receive) = self.receives.get_mut(key) {
            receive.under_way -= 1;
        }
        let number = self.sockets[slot as usize].number;
        let conn = self.sockets[slot as usize].open_conn();
        loop {
            let filling = &mut self.sockets[slot as usize].receiving.filling;
            match self.receives.front(filling) {
                Some(receive) if receive.under_way == 0 => {}
                _ => break,
            }
            let Some(receive) = self.receives.pop(filling) else {
                break;
            };
            // The adapter's memory is free now (batching 2.2), so the peer may send as much again.
            if let Some(conn) = conn {
                work.stack.consume(conn, receive.filled as usize);
            }
            self.tell_arrival(work.now, slot, receive.arrived);
            let (address, len) = (receive.address, receive.filled);
            let outcome = Outcome::Received(Buffer::Memory { address, len });
            self.respond(work.now, number, receive.tag, Status::Ok, outcome);
            self.count_received(len);
        }
        self.report_end_when_delivered(work, slot);
        self.report_unread(work, slot);
        self.leave_when_quiet(work, slot);
        self.finish_if_quiet(work.now, slot);
    }

    /// Reports what waits in the adapter while the host has posted no buffer for it. Data that is being transferred is not counted, and
    /// is reported first.
    pub(super) fn report_unread(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &self.sockets[slot as usize];
        let Phase::Connected(conn) = socket.phase else {
            return;
        };
        let receiving = &socket.receiving;
        let len = work.stack.readable_len(conn) as u32;
        if !work.shared.config.reports_unread
            || len == 0
            || !receiving.posted.is_empty()
            || !receiving.filling.is_empty()
            || socket.closing.is_whole()
            || socket.moving.is_some()
        {
            return;
        }
        let (number, ended) = (socket.number, receiving.peer_closed);
        let reason = work.stack.ended(conn).unwrap_or(CloseReason::Normal);
        let outcome = Outcome::Unread { len, ended };
        work.stack.report_more(conn);
        self.notify(work.now, number, status_of(reason), outcome);
    }

    fn count_received(&mut self, len: u32) {
        self.stats.receives += 1;
        self.stats.received_bytes += u64::from(len);
    }

    /// Once the peer has closed and all its data has been delivered, answers pending RECVs and notifies the host. Does nothing after a
    /// reset, which has discarded undelivered data.
    pub(super) fn report_end_when_delivered(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let receiving = &mut socket.receiving;
        let Phase::Connected(conn) = socket.phase else {
            return;
        };
        let reason = work.stack.ended(conn);
        let is_cut_off = reason.is_some_and(|reason| reason != CloseReason::Normal);
        if !receiving.peer_closed
            || receiving.end_reported
            || is_cut_off
            || socket.closing.is_whole()
            || socket.moving.is_some()
            || !receiving.filling.is_empty()
            || work.stack.readable_len(conn) > 0
        {
            return;
        }
        receiving.end_reported = true;
        let number = socket.number;
        self.answer_receives(work.now, slot, Status::EndOfStream);
        self.notify(work.now, number, Status::Ok, Outcome::PeerClosed);
    }

    /// Answers all pending RECVs without data.
    pub(super) fn answer_receives(&mut self, now: Time, slot: u32, status: Status) {
        let number = self.sockets[slot as usize].number;
        loop {
            let posted = &mut self.sockets[slot as usize].receiving.posted;
            let Some(receive) = self.receives.pop(posted) else {
                return;
            };
            let outcome = Outcome::nothing_received(receive.address);
            self.respond(now, number, receive.tag, status, outcome);
        }
    }
}

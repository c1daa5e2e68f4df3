//! Receiving: buffers posted ahead, and data that waits to be read.

use super::OsLayer;
use super::socket::{Intents, Later, Operation, Phase, Socket};
use crate::{Receive, SocketId, Unread};
use baton_bus::descriptor::{Action, Buffer, Response, Status};
use baton_bus::link::{Inline, Violation, extract};
use baton_bus::{Descriptor, HostLink, Urgency};
use baton_wire::{SeqNr, Time};

impl<P: Inline> OsLayer<P> {
    /// Takes at most `max` received bytes.
    pub fn receive(&mut self, socket: SocketId, max: usize) -> Receive<P> {
        let Some(entry) = self.known(socket) else {
            return Receive::Gone;
        };
        if entry.received.is_empty() {
            return if entry.error.is_some() {
                Receive::Gone
            } else if entry.ended {
                Receive::EndOfStream
            } else {
                Receive::WouldBlock
            };
        }
        match self.read(socket.0, max) {
            Some(data) => Receive::Data(data),
            None => Receive::WouldBlock,
        }
    }

    /// Returns how much data waits to be read.
    pub fn unread(&self, socket: SocketId) -> Unread {
        let Some(entry) = self.known(socket) else {
            return Unread::GONE;
        };
        Unread {
            len: entry.received_len + entry.later.len,
            ended: entry.has_ended() || entry.why_failed().is_some(),
        }
    }

    /// Returns whether the last [`Readable`](crate::Ready::Readable) event reported nothing new: the adapter has only delivered data that
    /// an earlier event had reported.
    pub fn is_repeated(&self, socket: SocketId) -> bool {
        self.known(socket).is_some_and(|entry| entry.is_repeated)
    }

    /// Returns whether all data here was read, and the adapter has reported more, which it delivers without waiting for the peer.
    pub fn is_delivery_due(&self, socket: SocketId) -> bool {
        let is_due = |entry: &Socket| entry.received.is_empty() && entry.later.len > 0;
        self.known(socket).is_some_and(is_due)
    }

    pub(super) fn read(&mut self, number: u32, max: usize) -> Option<P> {
        let entry = &mut self.sockets[number as usize];
        let piece = self.pieces.front_mut(&entry.received)?;
        if piece.len() > max {
            let data = piece.slice(0, max);
            *piece = piece.slice(max, piece.len() - max);
            entry.received_len -= max;
            entry.note_read();
            return Some(data);
        }
        let data = self.pieces.pop(&mut entry.received)?;
        entry.received_len -= data.len();
        entry.note_read();
        if entry.may_receive() {
            self.intend(number, Intents::RECEIVE);
        }
        Some(data)
    }

    /// Posts buffers for future data. Returns false if the ring is full. Buffers beyond the first are posted only while there are plenty.
    pub(super) fn post_buffers<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
    ) -> bool {
        let len = self.transfer_bytes(link);
        loop {
            let entry = self.socket(number);
            let waiting = entry.receives.len() + entry.received.len();
            let is_usable = matches!(entry.phase, Phase::Open | Phase::Packets);
            if !is_usable || !entry.may_receive() || waiting >= entry.receive_window {
                return true;
            }
            if entry.on_demand && !self.may_post_on_demand(link, number) {
                return true;
            }
            if self.queue.room() == 0 {
                return false;
            }
            let entry = self.socket(number);
            let urgency = if entry.receives.is_empty() {
                Urgency::Awaited
            } else if self.has_plenty(link) {
                Urgency::Lazy
            } else {
                return true;
            };
            let Some(address) = link.reserve() else {
                debug_assert!(false, "a buffer was pledged");
                return true;
            };
            self.posted += 1;
            let operation = Operation::Receive { address, len };
            let action = Action::Receive { address, len };
            let posted = self.request(now, number, action, operation, urgency);
            debug_assert!(posted, "there was room");
            self.settle_pledge(number);
        }
    }

    /// Returns whether an on-demand connection may post a buffer: there is a buffer for it, and data that fills the buffer. If there are
    /// plenty of buffers again, the connection is no longer on demand.
    fn may_post_on_demand<L: HostLink<Data = P>>(&mut self, link: &L, number: u32) -> bool {
        if self.room_for_pledges(link) > 0 {
            self.socket_mut(number).on_demand = false;
            self.settle_pledge(number);
            return true;
        }
        let has_buffer = self.spare_for_receives(link) > 0;
        let entry = self.socket_mut(number);
        let has_data = entry.later.len > 0 && entry.receives.is_empty();
        if has_data && !has_buffer && !std::mem::replace(&mut entry.queued.fetching, true) {
            self.fetching.push_back(number);
        }
        has_data && has_buffer
    }

    /// Lets on-demand connections with unread data post a buffer, as many as there are buffers. Returns true if there was one.
    pub(super) fn wake_fetching<L: HostLink<Data = P>>(&mut self, link: &L) -> bool {
        if self.fetching.is_empty() {
            return false;
        }
        let count = self.fetching.len().min(self.spare_for_receives(link));
        for _ in 0..count {
            let Some(number) = self.fetching.pop_front() else {
                break;
            };
            let entry = self.socket_mut(number);
            entry.queued.fetching = false;
            if entry.on_demand && entry.may_receive() {
                self.intend(number, Intents::RECEIVE);
            }
        }
        count > 0
    }

    /// Handles a returned buffer, with or without data.
    pub(super) fn handle_received<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        buffer: Buffer,
        entry: &[Descriptor],
    ) -> Result<(), Violation> {
        let number = response.socket;
        let (operation, unrequested) = self.operation_of(response)?;
        let Operation::Receive { address, len } = operation else {
            return Err(unrequested);
        };
        let got = buffer.len();
        if response.status == Status::Ok {
            if got == 0 || got > len {
                return Err(Violation::Length(got));
            }
            if matches!(buffer, Buffer::Memory { address: other, .. } if other != address) {
                return Err(unrequested);
            }
        }
        self.completed(response);
        self.posted -= 1;
        let data = match buffer {
            Buffer::Memory { .. } if response.status == Status::Ok => link.take(address, got),
            Buffer::Inline { .. } if response.status == Status::Ok => {
                link.free(address);
                extract(entry).map_err(Violation::from)
            }
            _ => {
                link.free(address);
                self.receive_failed(number, response.status);
                self.settle_pledge(number);
                self.finish_closing(number);
                return Ok(());
            }
        };
        self.settle_pledge(number);
        self.deliver(number, data?, got == len);
        self.finish_closing(number);
        Ok(())
    }

    /// Delivers data to a socket; `filled` says whether the data filled its buffer.
    fn deliver(&mut self, number: u32, data: P, filled: bool) {
        self.stats.receives += 1;
        self.stats.received_bytes += data.len() as u64;
        let most = self.config.receive_buffers;
        let entry = &mut self.sockets[number as usize];
        if entry.phase == Phase::Closing {
            self.stats.dropped_bytes += data.len() as u64;
            return;
        }
        if filled && entry.phase != Phase::Packets {
            entry.receive_window = (entry.receive_window * 2).min(most);
        }
        entry.received_len += data.len();
        let is_new = data.len() > entry.later.len;
        entry.later.len = entry.later.len.saturating_sub(data.len());
        let before = SeqNr(entry.came);
        entry.came = entry.came.wrapping_add(data.len() as u32);
        if let Some(timing) = &mut entry.timing {
            timing.came(before, SeqNr(entry.came));
        }
        self.pieces.push(&mut entry.received, data);
        self.wake_reader_for(number, is_new);
        self.intend(number, Intents::RECEIVE);
    }

    /// Handles a report of data that waits in the adapter.
    pub(super) fn handle_unread(
        &mut self,
        response: &Response,
        len: u32,
        ended: bool,
    ) -> Result<(), Violation> {
        self.news_of(response)?;
        let error = Some(response.status).filter(|&status| status != Status::Ok);
        let entry = self.socket_mut(response.socket);
        let len = len as usize;
        entry.later = Later { len, ended, error };
        if entry.on_demand && entry.may_receive() {
            self.intend(response.socket, Intents::RECEIVE);
        }
        self.wake_reader(response.socket);
        if error.is_some() {
            self.wake_writer(response.socket);
        }
        Ok(())
    }

    /// Handles a buffer that was returned without data.
    fn receive_failed(&mut self, number: u32, status: Status) {
        match status {
            Status::EndOfStream => self.end_of_stream(number),
            Status::TooManyRequests => {
                let entry = self.socket_mut(number);
                entry.receive_window = entry.receives.len().max(1);
                if entry.receives.is_empty() {
                    self.fail(number, status);
                }
            }
            // Another response reports the reason. Until it arrives, further buffers would be returned empty, too.
            _ => self.socket_mut(number).no_receive = true,
        }
    }

    /// Called when the peer sends no more data.
    pub(super) fn end_of_stream(&mut self, number: u32) {
        let entry = self.socket_mut(number);
        let was_known = entry.has_ended();
        entry.later = Later::default();
        if !std::mem::replace(&mut entry.ended, true) {
            self.settle_pledge(number);
            self.wake_reader_for(number, !was_known);
        }
    }
}

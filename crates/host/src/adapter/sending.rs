//! Sending: data goes into buffers of at most one transfer, or into descriptors, and is released once the adapter has fetched it.

use super::OsLayer;
use super::config::descriptors_of;
use super::socket::{Intents, Operation, Phase};
use super::stats::NoRoom;
use crate::{Gone, SocketId};
use baton_bus::descriptor::{Action, Buffer, FilePlace, Request, Response, Status};
use baton_bus::link::{Inline, Violation, embed};
use baton_bus::{HostLink, Urgency};
use baton_wire::{Span, Stages, Time};

impl<P: Inline> OsLayer<P> {
    /// Takes as much of `data` as there is space for. Returns how many bytes; if that was not all, the socket becomes writable later.
    pub(super) fn send<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        data: &P,
    ) -> Result<usize, Gone> {
        let number = socket.0;
        let entry = self.known(socket).ok_or(Gone)?;
        if !entry.may_send() {
            return Err(Gone);
        }
        if entry.phase == Phase::Opening {
            self.stats.no_room.count(NoRoom::Opening);
            self.socket_mut(number).wants_room = true;
            return Ok(0);
        }
        let most = self.transfer_bytes(link);
        let (mut taken, mut blocked) = (0, false);
        while taken < data.len() {
            let len = (data.len() - taken).min(most as usize);
            let held = self.socket(number).held_len;
            // More data follows the held data, so a partial segment may wait for it.
            blocked =
                held as usize + len > most as usize && self.flush(now, link, number, true).is_err();
            if blocked {
                break;
            }
            self.hold(number, data.slice(taken, len));
            taken += len;
        }
        let entry = self.socket_mut(number);
        if let Some(timing) = &mut entry.timing
            && taken > 0
        {
            timing.mark(entry.given, taken == data.len());
        }
        if self.socket(number).corked && !blocked {
            self.start_cork_timer(now, number);
        } else if blocked || self.flush(now, link, number, false).is_err() {
            // The data was taken and is sent when there is space.
            self.socket_mut(number).intents |= Intents::FLUSH;
        }
        self.socket_mut(number).wants_room = taken < data.len();
        Ok(taken)
    }

    /// Returns the number of bytes of a connection that were not given to the adapter yet, plus those that the adapter has not fetched yet.
    pub fn unsent(&self, socket: SocketId) -> usize {
        let Some(entry) = self.known(socket) else {
            return 0;
        };
        let sends = self.requests.numbers(&entry.sends);
        let waiting = sends.filter_map(|tag| match self.requests.get(tag)?.operation {
            Operation::Send { len, .. } => Some(len as usize),
            _ => None,
        });
        entry.held_len as usize + waiting.sum::<usize>()
    }

    /// Holds back partial segments while `cork` is set.
    pub fn set_cork<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        cork: bool,
    ) {
        let number = socket.0;
        if self.known(socket).is_none_or(|entry| !entry.may_send()) {
            return;
        }
        self.socket_mut(number).corked = cork;
        if !cork && self.flush(now, link, number, false).is_err() {
            self.socket_mut(number).intents |= Intents::FLUSH;
        }
    }

    pub(super) fn hold(&mut self, number: u32, piece: P) {
        let entry = self.socket(number);
        if entry.is_timed_at(entry.given) {
            return self.hold_apart(number, piece);
        }
        self.give(number, piece.len() as u32);
        let entry = &mut self.sockets[number as usize];
        entry.held_len += piece.len() as u32;
        // Data that continues the last piece without a copy shares a buffer with it.
        let joined = self
            .pieces
            .back_mut(&entry.held)
            .is_some_and(|last| last.try_append(&piece));
        if !joined {
            self.pieces.push(&mut entry.held, piece);
        }
    }

    /// Holds data back as a separate piece.
    pub(super) fn hold_apart(&mut self, number: u32, piece: P) {
        self.give(number, piece.len() as u32);
        let entry = &mut self.sockets[number as usize];
        entry.held_len += piece.len() as u32;
        self.pieces.push(&mut entry.held, piece);
    }

    fn start_cork_timer(&mut self, now: Time, number: u32) {
        let timer = Span::from_us(self.config.cork_timer_us.into());
        let entry = self.socket_mut(number);
        if entry.held.is_empty() || entry.cork_deadline.is_some() {
            return;
        }
        let deadline = now + timer;
        entry.cork_deadline = Some(deadline);
        self.corks.set(deadline, number);
    }

    /// Cancels the cork timer.
    pub(super) fn stop_cork_timer(&mut self, number: u32) {
        if self.socket_mut(number).cork_deadline.take().is_some() {
            self.tidy_corks();
        }
    }

    /// Removes cancelled cork timers.
    fn tidy_corks(&mut self) {
        let sockets = &self.sockets;
        let most = 2 * sockets.len() + 16;
        self.corks.tidy(most, |deadline, number| {
            sockets[number as usize].cork_deadline == Some(deadline)
        });
    }

    /// Schedules the held data of corks that have expired. Returns true if there was one.
    pub(super) fn fire_corks(&mut self, now: Time) -> bool {
        if self.corks.next().is_none() {
            return false;
        }
        let mut fired = false;
        while let Some((deadline, number)) = self.corks.pop(now) {
            let entry = self.socket_mut(number);
            if entry.cork_deadline == Some(deadline) {
                entry.cork_deadline = None;
                self.stats.corks_fired += 1;
                self.intend(number, Intents::FLUSH);
                fired = true;
            }
        }
        self.tidy_corks();
        fired
    }

    /// Drops the held data.
    pub(super) fn drop_held(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        self.pieces.clear(&mut entry.held);
        entry.held_len = 0;
        if let Some(timing) = &mut entry.timing {
            timing.forget_marks();
        }
        self.stop_cork_timer(number);
        self.tell_done_with(number);
    }

    /// Sends the held data. `more` says that more data follows immediately.
    ///
    /// # Errors
    /// Not all data could be sent: the rest follows after a completion or when there is space, if [`Intents::FLUSH`] is set.
    pub(super) fn flush<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
        more: bool,
    ) -> Result<(), NoRoom> {
        while let Some(piece) = self.pieces.front(&self.socket(number).held) {
            let len = piece.len() as u32;
            if let Some(why) = self.no_room(link, number, len) {
                self.stats.no_room.count(why);
                self.wait_for_room(number, why);
                return Err(why);
            }
            self.send_first(now, link, number, more);
        }
        self.stop_cork_timer(number);
        Ok(())
    }

    /// Returns approximately how many bytes a socket would take now, in addition to the held data.
    pub(super) fn send_room<L: HostLink<Data = P>>(
        &self,
        link: &L,
        socket: SocketId,
    ) -> Result<usize, Gone> {
        let most = self.transfer_bytes(link);
        let entry = self.known(socket).ok_or(Gone)?;
        if !entry.may_send() {
            return Err(Gone);
        }
        let is_full = entry.phase == Phase::Opening || entry.is_full();
        if is_full || self.no_room(link, socket.0, most).is_some() {
            return Ok(0);
        }
        let sends = (self.most_sends as usize).min(self.spare(link)) - entry.sends.len() as usize;
        Ok((sends * most as usize).saturating_sub(entry.held_len as usize))
    }

    /// Makes a socket become writable when it has buffer space, immediately if there is some.
    pub(super) fn want_room<L: HostLink<Data = P>>(&mut self, link: &L, socket: SocketId) {
        match self.send_room(link, socket) {
            Err(Gone) => {}
            Ok(0) => {
                self.socket_mut(socket.0).wants_room = true;
                let most = self.transfer_bytes(link);
                let why = self.no_room(link, socket.0, most);
                self.wait_for_room(socket.0, why.unwrap_or(NoRoom::Sends));
            }
            Ok(_) => self.wake_writer(socket.0),
        }
    }

    /// Returns what is missing for a SEND of `len` bytes, if anything.
    pub(super) fn no_room<L: HostLink<Data = P>>(
        &self,
        link: &L,
        number: u32,
        len: u32,
    ) -> Option<NoRoom> {
        let under_way = self.socket(number).sends.len();
        let is_inline = self.goes_inline(number, len);
        let needed = if is_inline {
            descriptors_of(len.max(self.config.most_inline))
        } else {
            1
        };
        if under_way >= self.most_sends {
            Some(NoRoom::Sends)
        } else if self.queue.room() < needed {
            Some(NoRoom::Ring)
        } else if !is_inline && under_way as usize >= self.spare(link) {
            Some(NoRoom::Buffers)
        } else {
            None
        }
    }

    /// Returns whether data of this length goes inside descriptors. Data that is to go with a SYN always does.
    fn goes_inline(&self, number: u32, len: u32) -> bool {
        len <= self.config.most_inline || self.socket(number).phase == Phase::Opening
    }

    /// Queues a SEND of the first held piece; the caller has checked for space.
    fn send_first<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
        more: bool,
    ) {
        let entry = &mut self.sockets[number as usize];
        let Some(piece) = self.pieces.pop(&mut entry.held) else {
            return;
        };
        let mut len = piece.len() as u32;
        let inline = self.goes_inline(number, len);
        let data = if inline {
            Buffer::Inline { len: len as u16 }
        } else {
            let Ok(address) = link.place(piece.clone()) else {
                unreachable!("a buffer is free and long enough");
            };
            self.placed += 1;
            len += self.join_held(link, number, address, len);
            Buffer::Memory { address, len }
        };
        let entry = self.socket_mut(number);
        entry.held_len -= len;
        let end = entry.given - entry.held_len;
        let timing = entry.timing.as_mut();
        let times = timing.map_or_else(Stages::empty, |timing| timing.take(end));
        let more = more || !entry.held.is_empty();
        let address = match data {
            Buffer::Memory { address, .. } => Some(address),
            Buffer::Inline { .. } => None,
        };
        let tag = self.remember(number, Operation::Send { address, len, end });
        let request = Request {
            socket: number,
            tag,
            action: Action::Send { data, more, times },
        };
        let mut head = request.encode();
        let mut entry = std::mem::take(&mut self.entry);
        entry.clear();
        entry.push(head);
        if inline {
            embed(&piece, &mut head, &mut entry);
            entry[0] = head;
        }
        let pushed = self.queue.push(now, &entry, len, Urgency::Awaited);
        debug_assert!(pushed, "there was room");
        self.entry = entry;
        self.stats.sends += 1;
        self.stats.inline_sends += u64::from(inline);
        self.stats.sent_bytes += u64::from(len);
    }

    /// Appends held data to a buffer with `used` bytes, as far as the link can do so. Returns how many bytes. This transfers a header and
    /// the content after it together.
    fn join_held<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        number: u32,
        address: u64,
        used: u32,
    ) -> u32 {
        let entry = &mut self.sockets[number as usize];
        let mut joined = 0;
        let start = entry.given - entry.held_len + used;
        while let Some(piece) = self.pieces.front(&entry.held)
            && !entry.is_timed_at(start + joined)
            && link.append(address, used + joined, piece)
        {
            joined += piece.len() as u32;
            self.pieces.pop(&mut entry.held);
        }
        joined
    }

    /// Called when the adapter has fetched data, or refuses to.
    pub(super) fn handle_sent<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        len: u32,
        cumulative: bool,
    ) -> Result<(), Violation> {
        let number = response.socket;
        let (operation, unrequested) = self.operation_of(response)?;
        let Operation::Send {
            address, len: sent, ..
        } = operation
        else {
            return Err(unrequested);
        };
        if response.status == Status::Ok && len != sent {
            return Err(unrequested);
        }
        while cumulative
            && let Some(first) = self.requests.first(&self.socket(number).sends)
            && first != response.tag
        {
            let entry = &mut self.sockets[number as usize];
            let Some(earlier) = self.requests.pop(&mut entry.sends) else {
                break;
            };
            self.released(earlier.operation);
            if let Operation::Send { address, len, .. } = earlier.operation {
                self.stats.completed_by_later += 1;
                self.free_sent(link, number, (address, len));
            }
        }
        self.completed(response);
        self.free_sent(link, number, (address, sent));
        if response.status != Status::Ok {
            self.send_failed(number, response.status);
        }
        self.tell_done_with(number);
        self.go_on_sending(number);
        self.finish_closing(number);
        Ok(())
    }

    /// Frees what held the data of an answered SEND: a buffer, `len` bytes in a file, or nothing.
    fn free_sent<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        number: u32,
        (address, len): (Option<u64>, u32),
    ) {
        match address {
            Some(address) if FilePlace::at(address).is_some() => {
                self.socket_mut(number).lent -= len;
                link.free(address);
            }
            Some(address) => self.free_placed(link, address),
            None => {}
        }
    }

    /// Frees a buffer of data that was to be sent.
    pub(super) fn free_placed<L: HostLink<Data = P>>(&mut self, link: &mut L, address: u64) {
        self.placed -= 1;
        link.free(address);
    }

    /// Handles a failed SEND, which leaves a hole in the stream: the connection cannot continue.
    fn send_failed(&mut self, number: u32, status: Status) {
        self.stats.sends_failed += 1;
        let entry = self.socket(number);
        if entry.phase == Phase::Open && entry.error.is_none() {
            self.fail(number, status);
            if !self.socket(number).unknown {
                self.intend(number, Intents::ABORT);
            }
        }
    }

    /// Continues sending on a connection after some of its sends were completed.
    fn go_on_sending(&mut self, number: u32) {
        let most = self.most_sends;
        let entry = self.socket(number);
        if !entry.intents.is_empty() {
            self.schedule(number);
        }
        let entry = self.socket(number);
        let is_open = entry.phase != Phase::Opening;
        if is_open && entry.wants_room && entry.sends.len() * 2 <= most && !entry.is_full() {
            self.wake_writer(number);
        }
    }
}

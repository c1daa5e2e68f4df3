//! SEND: fetches data from the host in order, as the connection's send buffer has space.

use super::closing;
use super::dma::Job;
use super::session::{Session, Work};
use super::socket::{Phase, Sending};
use crate::blocks::References;
use baton_bus::descriptor::{Buffer, FilePlace, Outcome, Status};
use baton_bus::link::{Inline, Violation, extract};
use baton_bus::{Descriptor, Urgency};
use baton_tcp::{CloseReason, ConnId, Stack, WriteFlags};
use baton_wire::{Payload, Pieces, Stages, Time};

/// Maximum number of bytes of a file that are read in one transfer.
const FILE_PIECE: u32 = 64 << 10;
/// A file is read only while fewer bytes than this wait to be sent on the connection. Data that is read long before it is sent leaves the
/// processor's cache, and takes much memory if the peers of many connections are slow.
const FILE_AHEAD: usize = 256 << 10;

/// A SEND.
#[derive(Clone, Debug)]
pub(super) struct Send<P> {
    pub(super) tag: u32,
    pub(super) data: SendData<P>,
    /// Whether more data follows immediately.
    pub(super) more: bool,
    /// Stages of the last byte whose times the host wants to know.
    pub(super) times: Stages,
    /// Part of a packet whose remainder was refused, so that none of the packet is sent.
    pub(super) is_cut: bool,
    /// Bytes of this SEND that were fetched earlier.
    pub(super) fetched: u32,
    /// Whether another part of the SEND follows, whose answer covers this part, too.
    pub(super) is_part: bool,
}

impl<P> Send<P> {
    /// Creates a SEND of `data`.
    pub(super) fn new(tag: u32, data: SendData<P>, more: bool) -> Self {
        Self {
            tag,
            data,
            more,
            times: Stages::empty(),
            is_cut: false,
            fetched: 0,
            is_part: false,
        }
    }
}

/// Location of the data of a SEND.
#[derive(Clone, Debug)]
pub(super) enum SendData<P> {
    /// Data in host memory or in a file.
    There { address: u64, len: u32 },
    /// Data on the adapter, which came in descriptors or has been fetched.
    Here(P),
    /// Data in the data cache, or still being fetched into it.
    Cached(References<P>),
}

impl<P: Payload + Inline> SendData<P> {
    /// Removes and returns the next bytes to write, at most `most`, and whether more remain.
    pub(super) fn take(&mut self, most: usize) -> Option<(P, bool)> {
        match self {
            Self::There { .. } => None,
            Self::Here(data) if data.len() > most => {
                let first = data.slice(0, most);
                *data = data.slice(most, data.len() - most);
                Some((first, true))
            }
            Self::Here(_) => match std::mem::replace(self, Self::Cached(References::new())) {
                Self::Here(data) => Some((data, false)),
                Self::There { .. } | Self::Cached(_) => None,
            },
            Self::Cached(parts) => {
                let part = parts.first_mut()?;
                let data = part.take(most)?;
                if part.len() == 0 {
                    parts.remove(0);
                }
                Some((data, !parts.is_empty()))
            }
        }
    }
}

impl<P: Payload + Inline> SendData<P> {
    /// Appends all of the data, which must be on the adapter, to `parts`.
    pub(super) fn move_to(self, parts: &mut Pieces<P>) {
        match self {
            Self::There { .. } => debug_assert!(false, "it has been fetched"),
            Self::Here(data) => parts.push(data),
            Self::Cached(cached) => {
                let whole = cached.into_iter().map(|mut part| part.take(usize::MAX));
                parts.extend(whole.flatten());
            }
        }
    }
}

impl<P: Payload + Inline> Send<P> {
    /// Returns whether the data is in host memory or a file and has not been fetched yet.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.data, SendData::There { .. })
    }

    /// Returns whether the data is in a file and has not been read yet.
    pub(super) fn is_in_file(&self) -> bool {
        matches!(self.data, SendData::There { address, .. } if FilePlace::at(address).is_some())
    }

    /// Splits off the first bytes, which are fetched before the rest. The data must be in host memory or a file.
    fn split_front(&mut self, len: u32) -> Self {
        let mut front = self.clone();
        if let (SendData::There { address, len: rest }, SendData::There { len: first, .. }) =
            (&mut self.data, &mut front.data)
        {
            *first = len;
            *rest -= len;
            *address += u64::from(len);
        }
        self.fetched += len;
        Self {
            more: true,
            times: Stages::empty(),
            is_part: true,
            ..front
        }
    }

    pub(super) fn len(&self) -> u32 {
        match &self.data {
            SendData::There { len, .. } => *len,
            SendData::Here(data) => data.len() as u32,
            SendData::Cached(parts) => parts.iter().map(|part| part.len()).sum(),
        }
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Returns the data of a SEND.
    pub(super) fn data_of(
        &mut self,
        buffer: Buffer,
        entry: &[Descriptor],
    ) -> Result<SendData<P>, Violation> {
        match buffer {
            Buffer::Memory { address, len } => Ok(SendData::There { address, len }),
            Buffer::Inline { .. } => {
                let data: P = extract(entry)?;
                self.stats.inline_bytes += data.len() as u64;
                Ok(SendData::Here(data))
            }
        }
    }

    /// Executes SEND, which is answered when its source buffer is no longer needed.
    pub(super) fn send(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        send: Send<P>,
    ) -> Result<(), Status> {
        let socket = &mut self.sockets[slot as usize];
        if !send.times.is_empty() && socket.timing.is_none() {
            return Err(Status::WrongState);
        }
        match socket.phase {
            Phase::Packets => return self.send_part(work, slot, send),
            Phase::Connecting { conn, .. } => {
                if self.send_with_syn(work, slot, conn, &send) {
                    return Ok(());
                }
            }
            Phase::Connected(_) if socket.moving.is_none() => {}
            Phase::Ending(Status::Ok) => return Err(Status::Shut),
            Phase::Ending(status) => return Err(status),
            Phase::Idle
            | Phase::Listening(_)
            | Phase::Reserved
            | Phase::Connected(_)
            | Phase::Importing
            | Phase::Exported => return Err(Status::WrongState),
        }
        let socket = &mut self.sockets[slot as usize];
        if socket.closing.shut {
            return Err(Status::Shut);
        }
        if send.len() == 0 {
            return Err(Status::BadValue);
        }
        let sending = &mut socket.sending;
        if sending.waiting.len() + sending.fetching.len() >= work.shared.config.most_sends {
            return Err(Status::TooManyRequests);
        }
        sending.more_follows = send.more;
        self.sends.push(&mut sending.waiting, send);
        self.feed(work, slot);
        self.give_up_if_failed(work, slot);
        Ok(())
    }

    /// If a connection has failed and the host wants to send, drops undelivered received data, so that the end is reported now: the host
    /// might not read before it learns of the end.
    pub(super) fn give_up_if_failed(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &self.sockets[slot as usize];
        let sends = !socket.sending.is_done() || socket.sending.owed.is_some();
        if let Some(conn) = socket.open_conn().filter(|_| sends)
            && (work.stack.ended(conn)).is_some_and(|reason| reason != CloseReason::Normal)
        {
            work.stack.abort(conn);
        }
    }

    /// Puts the data of a SEND into the SYN of a connection that is being opened, if the SYN has space, has not been sent yet, and no
    /// earlier data waits (Fast Open). Returns false if not: the SEND then waits for the connection.
    fn send_with_syn(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        conn: ConnId,
        send: &Send<P>,
    ) -> bool {
        let SendData::Here(data) = &send.data else {
            return false;
        };
        let socket = &self.sockets[slot as usize];
        let sending = &socket.sending;
        if !sending.waiting.is_empty() || socket.closing.shut || data.is_empty() {
            return false;
        }
        let written = work.stack.unacknowledged(conn);
        let room = work.stack.fast_open_room(work.now, conn);
        let room = room
            .saturating_sub(written)
            .min(work.stack.send_space(conn));
        if data.len() > room {
            return false;
        }
        write(work.stack, conn, data.clone(), send.more);
        self.answer_send(work, slot, send.tag, data.len() as u32);
        true
    }

    /// Writes fetched data to the connection and fetches more, as far as the send buffer has space; then closes the connection if that
    /// comes next.
    pub(super) fn feed(&mut self, work: &mut Work<'_, P>, slot: u32) {
        if matches!(self.sockets[slot as usize].phase, Phase::Packets) {
            return self.gather_packets(work, slot);
        }
        let Some(conn) = self.sockets[slot as usize].open_conn() else {
            return;
        };
        self.write_out(work.stack, slot, conn);
        while self.begin_next(work, slot, conn) {}
        self.close_when_sent(work, slot);
    }

    /// Starts the next SEND. Returns false if there is none or the SEND has to wait.
    fn begin_next(&mut self, work: &mut Work<'_, P>, slot: u32, conn: ConnId) -> bool {
        let sending = &mut self.sockets[slot as usize].sending;
        let Some(send) = self.sends.front(&sending.waiting) else {
            return false;
        };
        let len = send.len();
        let may_wait = self.sockets[slot as usize].moving.is_none();
        let sending = &self.sockets[slot as usize].sending;
        let room = match sending.unwritten.is_empty() {
            true => room_for(work.stack, conn, sending, send),
            false => 0,
        };
        if may_wait && room == 0 {
            return false;
        }
        let sending = &mut self.sockets[slot as usize].sending;
        match &send.data {
            &SendData::There { address, len } if may_wait && room < len => {
                let send = self.sends.front_mut(&sending.waiting);
                let first = send.expect("it is there").split_front(room);
                self.sends.push(&mut sending.fetching, first);
                sending.fetching_bytes += room;
                self.ask_read(Job::Read { slot, len: room }, address, room);
            }
            &SendData::There { address, len } => {
                self.sends
                    .move_front(&mut sending.waiting, &mut sending.fetching);
                sending.fetching_bytes += len;
                self.ask_read(Job::Read { slot, len }, address, len);
            }
            SendData::Here(_) | SendData::Cached(_) => {
                if !sending.fetching.is_empty() {
                    return false;
                }
                let tag = send.tag;
                if let SendData::Cached(parts) = &send.data {
                    let waits_for = &mut sending.awaited_insert;
                    if !self.cache.is_here(parts, slot, waits_for) {
                        return false;
                    }
                }
                self.sends
                    .move_front(&mut sending.waiting, &mut sending.unwritten);
                self.write_out(work.stack, slot, conn);
                self.answer_send(work, slot, tag, len);
            }
        }
        true
    }

    /// Processes the fetched data of the oldest SEND in progress.
    pub(super) fn fetched(&mut self, work: &mut Work<'_, P>, slot: u32, data: P) {
        let socket = &mut self.sockets[slot as usize];
        let sending = &mut socket.sending;
        let len = data.len() as u32;
        sending.fetching_bytes -= len;
        let Some(send) = self.sends.front_mut(&sending.fetching) else {
            return debug_assert!(false, "a SEND is being fetched");
        };
        let (tag, whole, is_part) = (send.tag, send.fetched + len, send.is_part);
        send.data = SendData::Here(data);
        let moved = self
            .sends
            .move_front(&mut sending.fetching, &mut sending.unwritten);
        debug_assert!(moved.is_some());
        let is_open = socket.open_conn().is_some();
        if !is_part {
            self.answer_send(work, slot, tag, whole);
        }
        if is_open {
            self.feed(work, slot);
            if !self.abort_when_fetched(work, slot) {
                self.leave_when_quiet(work, slot);
            }
        } else {
            self.sends
                .clear(&mut self.sockets[slot as usize].sending.unwritten);
            self.finish_if_quiet(work.now, slot);
        }
    }

    /// Resets the connection of the oldest SEND in progress, whose file could not be read: data that its peer is to receive is missing.
    pub(super) fn not_fetched(&mut self, work: &mut Work<'_, P>, slot: u32, len: u32) {
        let socket = &mut self.sockets[slot as usize];
        socket.sending.fetching_bytes -= len;
        let (number, conn) = (socket.number, socket.open_conn());
        let Some(send) = self.sends.pop(&mut socket.sending.fetching) else {
            return debug_assert!(false, "a SEND is being fetched");
        };
        // The last part of a SEND is answered for the whole SEND.
        if !send.is_part {
            self.settle(work.now, slot);
            let refused = not_sent(&send);
            self.respond(work.now, number, send.tag, Status::NotReadable, refused);
        }
        match conn {
            Some(conn) => {
                closing::reset(work, conn);
                self.over(work, slot, Status::NotReadable);
            }
            None => self.finish_if_quiet(work.now, slot),
        }
    }

    /// Writes fetched data to the connection, as far as the send buffer has space.
    fn write_out(&mut self, stack: &mut Stack<P>, slot: u32, conn: ConnId) {
        let socket = &mut self.sockets[slot as usize];
        let unwritten = &mut socket.sending.unwritten;
        while let Some(send) = self.sends.front_mut(unwritten) {
            let room = stack.send_space(conn);
            if room == 0 {
                return;
            }
            let Some((data, is_begun)) = send.data.take(room) else {
                return debug_assert!(false, "it has been fetched");
            };
            let (len, more) = (data.len() as u32, is_begun || send.more);
            let mut times = send.times;
            match is_begun {
                true => times = Stages::empty(),
                false => drop(self.sends.pop(unwritten)),
            }
            write(stack, conn, data, more);
            if let Some(timing) = &mut socket.timing
                && !timing.written(stack, conn, len, times)
            {
                self.stats.times_dropped += 1;
            }
        }
    }

    /// Answers a completed SEND, immediately or by a later cumulative answer.
    fn answer_send(&mut self, work: &mut Work<'_, P>, slot: u32, tag: u32, len: u32) {
        self.stats.sends += 1;
        self.stats.sent_bytes += u64::from(len);
        if work.shared.config.cumulative_sends {
            let owed = &mut self.sockets[slot as usize].sending.owed;
            if owed.replace((tag, len)).is_none() {
                self.owed.push(slot);
            }
            return;
        }
        self.complete_send(work.now, slot, (tag, len), false);
    }

    fn complete_send(&mut self, now: Time, slot: u32, (tag, len): (u32, u32), cumulative: bool) {
        let socket = &self.sockets[slot as usize];
        let urgency = match socket.sending.is_waited_for() {
            true => Urgency::Awaited,
            false => Urgency::Lazy,
        };
        let outcome = Outcome::Sent { len, cumulative };
        self.answer_as(now, socket.number, tag, Status::Ok, outcome, Some(urgency));
    }

    /// Removes and returns the fetched data that did not fit into the connection's send buffer.
    pub(super) fn take_unwritten(&mut self, slot: u32) -> Vec<P> {
        let unwritten = &mut self.sockets[slot as usize].sending.unwritten;
        let mut pieces = Pieces::new();
        while let Some(send) = self.sends.pop(unwritten) {
            send.data.move_to(&mut pieces);
        }
        pieces.into_vec()
    }

    /// Sends the cumulative answer that is pending for a socket.
    pub(super) fn settle(&mut self, now: Time, slot: u32) {
        let Some(socket) = self.sockets.get_mut(slot as usize) else {
            return;
        };
        if let Some(last) = socket.sending.owed.take() {
            self.complete_send(now, slot, last, true);
        }
    }

    /// Sends all pending cumulative answers.
    pub(super) fn settle_all(&mut self, now: Time) {
        if self.owed.is_empty() {
            return;
        }
        let mut owed = std::mem::take(&mut self.owed);
        for slot in owed.drain(..) {
            self.settle(now, slot);
        }
        self.owed = owed;
    }

    /// Answers SENDs that have not been started.
    pub(super) fn answer_sends(&mut self, now: Time, slot: u32, status: Status) {
        self.settle(now, slot);
        let number = self.sockets[slot as usize].number;
        loop {
            let waiting = &mut self.sockets[slot as usize].sending.waiting;
            let Some(send) = self.sends.pop(waiting) else {
                return;
            };
            self.respond(now, number, send.tag, status, not_sent(&send));
        }
    }
}

/// Writes data for which the send buffer has space.
fn write<P: Payload>(stack: &mut Stack<P>, conn: ConnId, data: P, more: bool) {
    let len = data.len();
    let flags = WriteFlags {
        more,
        ..WriteFlags::default()
    };
    let taken = stack.write_with(conn, data, flags);
    debug_assert_eq!(taken, Ok(len), "there is room");
}

/// Returns the outcome of a SEND that was not started.
pub(super) fn not_sent<P: Payload + Inline>(send: &Send<P>) -> Outcome {
    let (len, cumulative) = (send.fetched + send.len(), false);
    Outcome::Sent { len, cumulative }
}

/// Returns how much of a SEND fits in the send buffer, in addition to the data being fetched: all or nothing. A SEND that is larger than
/// the buffer is split: its first part fills the buffer once that is empty, each later part once it is half empty.
fn room_for<P: Payload + Inline>(
    stack: &Stack<P>,
    conn: ConnId,
    sending: &Sending,
    send: &Send<P>,
) -> u32 {
    let (free, len) = (stack.send_space(conn), send.len());
    if send.is_in_file() {
        return room_for_file(stack, conn, sending, len);
    }
    let needed = sending.fetching_bytes as usize + len as usize;
    let whole = stack.write_limit(conn);
    let least = match send.fetched {
        0 => whole,
        _ => whole.div_ceil(2),
    };
    match free >= needed {
        true => len,
        false if sending.fetching_bytes == 0 && free >= least => free as u32,
        false => 0,
    }
}

/// Returns how much of a SEND of `len` bytes in a file is read next, in addition to the data being fetched.
fn room_for_file<P: Payload>(stack: &Stack<P>, conn: ConnId, sending: &Sending, len: u32) -> u32 {
    let fetching = sending.fetching_bytes as usize;
    let piece = len.min(FILE_PIECE).min(stack.write_limit(conn) as u32);
    let has_room = stack.send_space(conn) >= fetching + piece as usize;
    match has_room && stack.not_sent(conn) + fetching < FILE_AHEAD {
        true => piece,
        false => 0,
    }
}

//! Delivery of arriving segments: to a connection, to TIME-WAIT, or to a listener; others are answered by a reset.

use super::{Stack, tell_of_data};
use crate::clock::TimestampClock;
use crate::connection::{Connection, Context, Effects, Marks};
use crate::segment::Segment;
use crate::time_wait::Verdict;
use crate::types::{ConnId, Handled, ListenerId, Refusal};
use baton_wire::{Endpoint, Flags, Flow, Header, Payload, SeqNr, Time};

/// Least distance of a new incarnation's ISN from the old one's last number (RFC 6191 2 asks for more than 0).
const ISN_DISTANCE: u32 = 1 << 16;

impl<P: Payload> Stack<P> {
    /// Processes one segment addressed to this stack.
    pub fn handle_segment(&mut self, now: Time, mut segment: Segment<P>) -> Handled {
        self.handle_lent(now, &mut segment)
    }

    /// Processes a segment passed by reference, so that the caller can reuse its memory. Takes its data.
    pub fn handle_lent(&mut self, now: Time, segment: &mut Segment<P>) -> Handled {
        let id = self.find_recent(segment);
        let len = segment.payload_len() as u32;
        if self.memory.is_tight {
            id.inspect(|&id| self.judge(id));
        }
        if let Some(id) = id
            && self.conn(id).is_predicted(segment, len)
        {
            return self.deliver_predicted(now, id, segment, len, false);
        }
        self.handle_any(now, id, segment, len)
    }

    /// Processes any segment; `id` is its connection, if the stack has it.
    fn handle_any(
        &mut self,
        now: Time,
        id: Option<ConnId>,
        segment: &mut Segment<P>,
        len: u32,
    ) -> Handled {
        self.stats.segments_received += 1;
        let flags = segment.header.flags;
        let mut handled = Handled {
            conn: None,
            syn: flags.contains(Flags::SYN) && !flags.contains(Flags::ACK),
            data_len: len,
            new_ack: false,
            refused: None,
        };
        match id {
            Some(id) => self.deliver(now, id, segment, &mut handled),
            None => self.handle_stray(now, segment.flow_at_receiver(), segment, &mut handled),
        }
        if let Some(reason) = handled.refused {
            self.stats.refused.count(reason);
        }
        handled
    }

    /// Reports whether `segment` is for a connection of this stack, or opens one at a listener of this stack. If not, an owner that shares
    /// the addresses between two stacks tries the other one first.
    pub fn claims(&mut self, now: Time, segment: &Segment<P>) -> bool {
        let local = segment.flow_at_receiver().local;
        let is_for_listener = segment.header.opens() && self.listener_of(local).is_some();
        is_for_listener || self.has_connection_of(now, segment)
    }

    /// Returns whether `segment` is for a connection of this stack, including those in TIME-WAIT, which a listener of this stack opens again
    /// by itself.
    pub fn has_connection_of(&mut self, now: Time, segment: &Segment<P>) -> bool {
        let flow = segment.flow_at_receiver();
        let opens_itself = || self.listener_of(flow.local).is_some();
        self.find(&flow).is_some()
            || self.in_time_wait(now, &flow)
                && (opens_itself() || !self.reopens_time_wait(now, segment))
    }

    /// Processes segments of one connection that were merged into one: each piece of the data arrived as a segment of its own, in
    /// sequence and no longer than the first, with headers that differ only in their numbers and PSH. The effect is the same as
    /// processing them one after the other. Returns the sum of their [`Handled`].
    pub fn handle_merged(&mut self, now: Time, segment: &mut Segment<P>) -> Handled {
        let len = segment.payload_len() as u32;
        if segment.payload.len() > 1
            && !self.memory.is_tight
            && let Some(id) = self.find_recent(segment)
            && self.conn(id).predicts_run(segment, len)
        {
            return self.deliver_predicted(now, id, segment, len, true);
        }
        let mut pieces = std::mem::take(&mut segment.payload);
        let mut total: Option<Handled> = None;
        for piece in pieces.drain(..) {
            let len = piece.len() as u32;
            segment.payload.push(piece);
            let seq = segment.header.seq;
            let flags = segment.header.flags;
            let handled = self.handle_lent(now, segment);
            segment.payload.clear();
            (segment.header.seq, segment.header.flags) = (seq + len, flags);
            total = Some(match total {
                Some(before) => handled.after(&before),
                None => handled,
            });
        }
        segment.payload = pieces;
        total.unwrap_or_else(|| self.handle_lent(now, segment))
    }

    /// Delivers a segment, or several that were merged, that its connection predicted. Its only effects are data and acknowledgments
    /// for the owner.
    #[inline(always)]
    fn deliver_predicted(
        &mut self,
        now: Time,
        id: ConnId,
        segment: &mut Segment<P>,
        len: u32,
        merged: bool,
    ) -> Handled {
        let Self {
            connections,
            profiles,
            stats,
            challenges,
            fast_open,
            events,
            ..
        } = self;
        stats.segments_received += if merged {
            segment.payload.len() as u64
        } else {
            1
        };
        let conn = &mut connections[id.0 as usize];
        let mut context = Context {
            now,
            config: &profiles[conn.profile],
            stats,
            challenges,
            fast_open,
        };
        let mut effects = Effects::default();
        let seq = segment.header.seq;
        match merged {
            true => conn.take_run(&mut context, segment, &mut effects),
            false => conn.take_alone(&mut context, segment, len, &mut effects),
        }
        if conn.listener.is_none() {
            tell_of_data(events, id, conn, &effects);
        }
        if conn.marks.intersects(Marks::TIMES) {
            self.note_times(now, id, (len > 0).then_some((seq, seq + len)));
        }
        self.touch(now, id);
        Handled {
            conn: Some(id),
            syn: false,
            data_len: len,
            new_ack: effects.new_ack,
            refused: None,
        }
    }

    /// Reports whether `segment` opens a new incarnation of a connection in TIME-WAIT (RFC 6191 2); if so, ends its TIME-WAIT. For a
    /// stack whose listeners are elsewhere; a stack with a listener does this itself.
    pub fn reopens_time_wait(&mut self, now: Time, segment: &Segment<P>) -> bool {
        let header = &segment.header;
        let flow = segment.flow_at_receiver();
        let listener = Some(self.profiles[0].timestamps);
        header.opens()
            && matches!(
                self.time_wait
                    .handle(now, &flow, header, segment.sequence_len(), listener),
                Some(Verdict::Reopen { .. })
            )
    }

    /// Delivers a segment to its connection.
    pub(super) fn deliver(
        &mut self,
        now: Time,
        id: ConnId,
        segment: &mut Segment<P>,
        handled: &mut Handled,
    ) {
        handled.conn = Some(id);
        self.judge(id);
        let Self {
            connections,
            profiles,
            stats,
            challenges,
            fast_open,
            listeners,
            ..
        } = self;
        let conn = &mut connections[id.0 as usize];
        if let Some(listener) = conn.listener
            && conn.is_half_open()
            && !segment.header.flags.intersects(Flags::SYN | Flags::RST)
            && !listeners[listener.0 as usize].takes_established()
        {
            // The handshake cannot be completed; the peer will try again.
            handled.refused = Some(Refusal::AcceptQueueFull);
            return;
        }
        let mut context = Context {
            now,
            config: &profiles[conn.profile],
            stats,
            challenges,
            fast_open,
        };
        let mut effects = Effects::default();
        let seq = segment.header.seq;
        conn.handle_segment(&mut context, segment, &mut effects);
        if conn.marks.intersects(Marks::TIMES) {
            let has_data = handled.data_len > 0 && effects.refused.is_none();
            let data = has_data.then_some((seq, seq + handled.data_len));
            self.note_times(now, id, data);
        }
        handled.refused = effects.refused;
        handled.new_ack = effects.new_ack;
        self.apply(now, id, &mut effects);
    }

    /// Processes a segment that belongs to no connection (RFC 9293 3.10.7.1 and 3.10.7.2).
    fn handle_stray(
        &mut self,
        now: Time,
        flow: Flow,
        segment: &mut Segment<P>,
        handled: &mut Handled,
    ) {
        let header = &segment.header;
        let mut beyond = None;
        let listener = self.listener_of(flow.local);
        let waiting = listener.map(|id| &self.listeners[id.0 as usize]);
        let taking = waiting.filter(|waiting| waiting.takes_syn());
        let reopening = taking.map(|waiting| self.profiles[waiting.profile].timestamps);
        match self
            .time_wait
            .handle(now, &flow, header, segment.sequence_len(), reopening)
        {
            Some(Verdict::Acknowledge(answer)) => {
                handled.refused = Some(Refusal::TimeWait);
                self.answer(flow, answer);
                return;
            }
            Some(Verdict::Ignore) => {
                handled.refused = Some(Refusal::TimeWait);
                return;
            }
            Some(Verdict::Reopen { beyond: last }) => beyond = Some(last),
            None => {}
        }
        match listener {
            Some(listener) if handled.syn && !header.flags.contains(Flags::RST) => {
                self.open_passively(now, flow, listener, segment, beyond, handled);
            }
            // No sane peer sends this (RFC 9293 3.10.7.2, fourth).
            Some(_) if !header.flags.intersects(Flags::ACK | Flags::RST) => {
                handled.refused = Some(Refusal::NoAck);
            }
            Some(listener) => match self.returned_cookie(now, &flow, listener, header, handled) {
                Some(mss) => self.open_from_cookie(now, listener, mss, segment, handled),
                None => self.refuse_stray(flow, segment, handled),
            },
            None => self.refuse_stray(flow, segment, handled),
        }
    }

    /// Refuses a segment that belongs to no connection, and answers it by a reset.
    fn refuse_stray(&mut self, flow: Flow, segment: &Segment<P>, handled: &mut Handled) {
        handled.refused.get_or_insert(Refusal::NoConnection);
        if let Some(reset) = reset_for(segment) {
            self.answer(flow, reset);
        }
    }

    /// Returns the listener for `local`, by its address or by the unspecified one.
    pub fn listener_of(&self, local: Endpoint) -> Option<ListenerId> {
        let exact = self.listening.get(&local);
        exact
            .or_else(|| self.listening.get(&local.unspecified()))
            .copied()
    }

    fn open_passively(
        &mut self,
        now: Time,
        flow: Flow,
        listener: ListenerId,
        syn: &mut Segment<P>,
        beyond: Option<SeqNr>,
        handled: &mut Handled,
    ) {
        let waiting = &self.listeners[listener.0 as usize];
        if !waiting.takes_established() {
            handled.refused = Some(Refusal::AcceptQueueFull);
            return;
        }
        if !self.has_memory_for(None, 0) {
            handled.refused = Some(Refusal::NoMemory);
            return;
        }
        if self.wants_cookie(listener) {
            self.send_cookie(now, flow, listener, &syn.header);
            return;
        }
        let waiting = &mut self.listeners[listener.0 as usize];
        if !waiting.takes_syn() {
            handled.refused = Some(Refusal::BacklogFull);
            return;
        }
        let owed = self.judge_fast_open(now, &flow, listener, syn);
        let mut iss = self.secret.sequence(now, &flow);
        if let Some(last) = beyond {
            iss = iss.latest(last + ISN_DISTANCE);
        }
        let clock = TimestampClock::new(self.secret.timestamp_offset(&flow));
        let waiting = &mut self.listeners[listener.0 as usize];
        if !owed.opens {
            waiting.half_opened();
        }
        let profile = self.profiles.share(waiting.profile);
        let config = &self.profiles[profile];
        let mut conn = Connection::answering(now, syn, config, iss, clock, listener);
        conn.profile = profile;
        if owed.cookie {
            let option = syn.header.options.fast_open;
            conn.owe_cookie(option.is_some_and(|option| option.experimental));
        }
        let id = self.insert(conn);
        self.hear_of_path(now, id);
        handled.conn = Some(id);
        if owed.opens {
            self.begin_fast_open(now, id, listener, &mut syn.payload);
        }
        self.touch(now, id);
    }
}

/// The reset that answers an unexpected segment (RFC 9293 3.10.7.1), unless that is a reset.
fn reset_for<P: Payload>(segment: &Segment<P>) -> Option<Header> {
    let Header {
        seq, ack, flags, ..
    } = segment.header;
    if flags.contains(Flags::RST) {
        return None;
    }
    Some(if flags.contains(Flags::ACK) {
        Header {
            seq: ack,
            flags: Flags::RST,
            ..Header::default()
        }
    } else {
        Header {
            ack: seq + segment.sequence_len(),
            flags: Flags::RST | Flags::ACK,
            ..Header::default()
        }
    })
}

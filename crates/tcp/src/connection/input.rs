//! Processing of an arriving segment (RFC 9293 3.10.7), in the order of the RFC's steps.

use super::urgent::urgent_end;
use super::{
    Connection, Context, DEFAULT_MSS_V4, DEFAULT_MSS_V6, Effects, End, LARGEST_SHIFT, LEAST_MSS,
    Marks, TIMESTAMPS_LEN,
};
use crate::clock::Past;
use crate::config::Config;
use crate::memory::PIECE;
use crate::payload::{cut_front, truncate};
use crate::segment::Segment;
use crate::types::{CloseReason, Refusal, State};
use baton_wire::{Flags, Header, Payload, Pieces, SackBlock, SeqNr, Span, Time};
use std::net::IpAddr;

/// Time after which TS.Recent is no longer valid (RFC 7323 5.5).
pub(super) const RECENT_VALID: Span = Span::from_secs(24 * 24 * 3600);

/// Where a segment lies relative to the window.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    /// Within it.
    Whole,
    /// Partly outside; the parts outside were cut off.
    Cut,
    /// Before it, without data. The segment is answered as the RFC wants, but its ACK counts: otherwise two ends that both lost the
    /// other's last ACKs would answer each other for ever.
    Old,
}

impl<P: Payload> Connection<P> {
    /// Processes a segment of this connection that is not as predicted, and takes its data. The segment is passed by reference
    /// because it is large.
    pub(crate) fn handle_segment(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment<P>,
        effects: &mut Effects,
    ) {
        self.counts.segments_in = self.counts.segments_in.wrapping_add(1);
        let outcome = match self.state {
            State::SynSent => self.syn_sent(cx, segment, effects),
            _ => self.synchronizing(cx, segment, effects),
        };
        effects.refused = outcome.err();
    }

    /// RFC 9293 3.10.7.3.
    fn syn_sent(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment<P>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let Segment {
            header, payload, ..
        } = segment;
        let flags = header.flags;
        let acks = flags.contains(Flags::ACK);
        if acks && (header.ack.at_or_before(self.tx.iss) || header.ack.after(self.tx.max)) {
            if !flags.contains(Flags::RST) {
                effects.reset = Some(Box::new(reset_for_ack(header.ack)));
            }
            return Err(Refusal::BadAck);
        }
        if flags.contains(Flags::RST) {
            // Anybody could have sent a reset without an acceptable ACK.
            if acks {
                effects.end = Some(End::Closed(CloseReason::Refused));
                return Ok(());
            }
            return Err(Refusal::Malformed);
        }
        if !flags.contains(Flags::SYN) {
            return Err(Refusal::Malformed);
        }
        if acks && self.is_strange_answer(cx.now, header) {
            effects.reset = Some(Box::new(reset_for_ack(header.ack)));
            return Err(Refusal::Paws);
        }
        self.take_syn(cx.now, header, cx.config);
        if acks {
            self.rx.edge = self.rx.next + u32::from(self.syn_window(cx.config));
            self.establish(cx, header, effects);
            self.take_answer_text(cx, header, payload, effects)?;
            self.owe_ack();
        } else {
            // Simultaneous open: the SYN goes again, with an ACK (RFC 9293 3.5).
            self.keep_text_of_syn(cx, payload);
            self.state = State::SynReceived;
            self.tx.next = self.tx.iss;
        }
        Ok(())
    }

    /// Takes the sequence number, window and options of the peer's SYN.
    pub(super) fn take_syn(&mut self, now: Time, header: &Header, config: &Config) {
        let options = &header.options;
        self.notification.take_syn(header.flags, config);
        self.rx.irs = header.seq;
        self.rx.next = header.seq + 1;
        self.rx.edge = self.rx.next;
        self.rx.last_ack = self.rx.next;
        self.tx.window = header.window.into();
        self.tx.largest_window = self.tx.window;
        self.tx.window_seq = header.seq;
        self.tx.window_ack = header.ack;
        let default_mss = match self.flow.remote.addr {
            IpAddr::V4(_) => DEFAULT_MSS_V4,
            IpAddr::V6(_) => DEFAULT_MSS_V6,
        };
        self.options.mss = options
            .mss
            .unwrap_or(default_mss)
            .min(config.mss)
            .max(LEAST_MSS);
        match options.window_scale {
            Some(shift) if self.options.window_scaling => {
                self.options.send_shift = shift.min(LARGEST_SHIFT)
            }
            _ => {
                self.options.window_scaling = false;
                self.options.receive_shift = 0;
            }
        }
        self.options.sack &= options.sack_permitted;
        self.options.timestamps &= options.timestamps.is_some();
        if let Some(timestamps) = options.timestamps {
            self.options.recent = timestamps.value;
            self.recent_at = Past::at(now);
        }
        debug_assert!(
            self.options.mss > TIMESTAMPS_LEN,
            "a segment has room for data"
        );
    }

    /// RFC 9293 3.10.7.4.
    fn synchronizing(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment<P>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let Segment {
            ecn,
            header,
            payload,
            ..
        } = segment;
        let urgent_end = urgent_end(header);
        let is_syn = header.flags & (Flags::SYN | Flags::RST) == Flags::SYN;
        let again = is_syn && self.state == State::SynReceived && header.seq == self.rx.irs;
        if again {
            self.syn_again(cx.config, header, payload)?;
        }
        let start = header.seq;
        let mut fin = header.flags.contains(Flags::FIN);
        if is_syn && !again {
            // Challenge ACK, whatever else the segment holds: its sender may have lost the connection (RFC 5961 4.2).
            self.challenge(cx);
            return Err(Refusal::SynInConnection);
        }
        self.check_timestamp(cx, header, payload)?;
        let fit = self.check_sequence(cx, header, payload, &mut fin)?;
        if header.flags.contains(Flags::RST) {
            return self.take_reset(cx, header.seq, effects);
        }
        if !header.flags.contains(Flags::ACK) {
            return Err(Refusal::NoAck);
        }
        if self.state == State::SynReceived {
            if fit == Fit::Old {
                return Err(Refusal::OutOfWindow);
            }
            let first = self.tx.iss + 1;
            if header.ack.before(first) || header.ack.after(self.tx.max.latest(first)) {
                effects.reset = Some(Box::new(reset_for_ack(header.ack)));
                return Err(Refusal::BadAck);
            }
            self.establish(cx, header, effects);
            self.update_first_window(header);
        }
        let carries = fit == Fit::Old || !payload.is_empty() || effects.established;
        if !payload.is_empty() {
            self.take_congestion_mark(cx, *ecn, header.flags);
        }
        self.take_ack(cx, header, carries, effects)?;
        // Only now: a segment whose ACK is not acceptable may come from anybody.
        self.last_received_at = Past::at(cx.now);
        self.timers.keepalive_probes = 0;
        if fit != Fit::Old {
            self.take_timestamp(cx.now, header, start);
        }
        if let Some(end) = urgent_end
            && effects.end.is_none()
        {
            self.take_urgent(end, effects);
        }
        if effects.end.is_none() {
            self.take_text(cx, header, payload, fin, start, effects)?;
            if fit == Fit::Cut {
                self.owe_ack();
            }
        }
        Ok(())
    }

    /// Processes a repeated SYN during the handshake. Without an ACK our answer was lost; with an ACK it is a simultaneous
    /// open, and what follows the SYN counts (RFC 9293 3.5, figure 7).
    fn syn_again(
        &mut self,
        config: &Config,
        header: &mut Header,
        payload: &mut Pieces<P>,
    ) -> Result<(), Refusal> {
        self.notification.take_syn_again(header.flags);
        if header.flags.contains(Flags::ACK) && !self.marks.contains(Marks::PASSIVE) {
            if self.tx.max.after(self.tx.iss + 1) {
                // Data of both ends crossed: an ACK reports this end's state to the peer, as in Linux.
                let syn = header.seq;
                self.note_duplicate(config, syn, syn + 1);
                self.owe_ack();
            }
            header.seq += 1;
            let len: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
            let known = self.rx.next - header.seq;
            if len >= known || !header.flags.contains(Flags::FIN) {
                cut_front(payload, known.min(len) as usize);
                header.seq = self.rx.next;
            }
            return Ok(());
        }
        self.send_syn_again();
        Err(Refusal::OutOfWindow)
    }

    fn update_first_window(&mut self, header: &Header) {
        self.tx.window = self.window_of(header);
        self.tx.largest_window = self.tx.largest_window.max(self.tx.window);
        self.tx.window_seq = header.seq;
        self.tx.window_ack = header.ack;
    }

    /// PAWS (RFC 7323 5.3, R1), and 3.2: all segments carry timestamps once agreed on.
    fn check_timestamp(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        payload: &Pieces<P>,
    ) -> Result<(), Refusal> {
        if !self.options.timestamps || header.flags.contains(Flags::RST) {
            return Ok(());
        }
        let Some(timestamps) = header.options.timestamps else {
            return match cx.config.linux.takes_bare_segments {
                true => Ok(()),
                false => Err(Refusal::NoTimestamp),
            };
        };
        let older = (timestamps.value.wrapping_sub(self.options.recent) as i32) < 0;
        if older && self.recent_at.elapsed(cx.now) <= RECENT_VALID {
            self.answer_unacceptable(cx, !payload.is_empty());
            return Err(Refusal::Paws);
        }
        Ok(())
    }

    /// RFC 9293 3.10.7.4, first: sequence number. Cuts off what lies outside the window.
    fn check_sequence(
        &mut self,
        cx: &mut Context<'_>,
        header: &mut Header,
        payload: &mut Pieces<P>,
        fin: &mut bool,
    ) -> Result<Fit, Refusal> {
        let (flags, seq) = (header.flags, &mut header.seq);
        let (next, edge) = (self.rx.next, self.rx.edge.latest(self.rx.next));
        if flags.contains(Flags::RST) {
            // Of a reset only the sequence number counts, whatever it carries. It must be before the window's edge (RFC 5961 3.2).
            let inside = *seq == next || (seq.after(next) && seq.before(edge));
            return inside.then_some(Fit::Whole).ok_or(Refusal::OutOfWindow);
        }
        let data_len: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        let len = data_len + u32::from(*fin);
        let end = *seq + len;
        let old = if len == 0 {
            seq.before(next)
        } else {
            end.at_or_before(next)
        };
        // An ACK or a FIN at the edge needs no buffer space. At a closed window data is cut off, and the ACK counts.
        let beyond = seq.after(edge) || (*seq == edge && data_len > 0 && *seq != next);
        if old || beyond {
            self.answer_unacceptable(cx, data_len > 0);
            if old && data_len > 0 {
                // The peer did not get our ACKs: send more of them.
                self.start_quick_acks(cx.config);
                self.marks.remove(Marks::INTERACTIVE);
                self.note_duplicate(cx.config, *seq, end);
            }
            return if old && len == 0 {
                Ok(Fit::Old)
            } else {
                Err(Refusal::OutOfWindow)
            };
        }
        let mut fit = Fit::Whole;
        if seq.before(next) {
            let overlap = next - *seq;
            cut_front(payload, overlap.min(data_len) as usize);
            *seq = next;
            fit = Fit::Cut;
        }
        let data_end = end - u32::from(*fin);
        if data_end.after(edge) {
            truncate(payload, (edge - *seq) as usize);
            *fin = false;
            fit = Fit::Cut;
        }
        Ok(fit)
    }

    /// RFC 9293 3.10.7.4, second, with RFC 5961 3.2: only the very next number resets.
    fn take_reset(
        &mut self,
        cx: &mut Context<'_>,
        seq: SeqNr,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if seq != self.rx.next {
            self.challenge(cx);
            return Err(Refusal::BlindReset);
        }
        let reason = match self.state {
            State::SynReceived if !self.is_opened_fast() => CloseReason::Refused,
            _ => CloseReason::Reset,
        };
        effects.end = Some(End::Closed(reason));
        Ok(())
    }

    /// RFC 9293 3.10.7.4, seventh and eighth: data and FIN. `start` is where the segment began before it was trimmed.
    fn take_text(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        payload: &mut Pieces<P>,
        fin: bool,
        start: SeqNr,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if !self.receives() {
            return Ok(());
        }
        let seq = header.seq;
        let is_cut = start.before(seq);
        if is_cut {
            self.note_duplicate(cx.config, start, seq);
        }
        if payload.is_empty() && !fin {
            return Ok(());
        }
        if !payload.is_empty() {
            if self.wants_no_data() {
                return Err(self.refuse_data(header, effects));
            }
            if self.lacks_memory(payload) {
                return Err(Refusal::NoMemory);
            }
            self.note_data_arrival(cx);
        }
        let len: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        self.note_segment_len(len, cx.config);
        // Of several parts that had arrived before, only the first is reported (RFC 2883 4.2.2).
        if !is_cut && let Some(known) = self.receive.known_part(seq, seq + len + u32::from(fin)) {
            self.note_duplicate(cx.config, known.start, known.end);
        }
        if seq != self.rx.next {
            // Out of order: an immediate ACK of its own, so that the sender can count duplicates (RFC 5681 4.2).
            self.rx.acks_owed = self.rx.acks_owed.saturating_add(1);
            self.counts.out_of_order_segments = self.counts.out_of_order_segments.wrapping_add(1);
            if !self.receive.keep(seq, std::mem::take(payload), fin) {
                cx.stats.out_of_order_dropped += 1;
            }
            return Ok(());
        }
        let had_holes = self.receive.has_holes();
        let delivered = self.receive.deliver(seq, payload, fin);
        let received = (delivered.next - self.rx.next) - u32::from(delivered.fin);
        self.counts.bytes_received += u64::from(received);
        self.rx.next = delivered.next;
        if self.receive.ready_len() > 0 && !self.marks.contains(Marks::READABLE_TOLD) {
            effects.readable = true;
        }
        // Linux delays this ACK only after data has arrived.
        let waits =
            cx.config.delay_fin_ack && self.state == State::Established && self.has_heard_data();
        if delivered.fin && waits {
            // Our FIN may follow soon: the ACK can travel with it.
            self.marks.insert(Marks::INTERACTIVE);
        }
        self.acknowledge_text(cx, had_holes || (delivered.fin && !waits));
        if delivered.fin {
            self.take_fin(effects);
        }
        Ok(())
    }

    /// Reports whether the segment must be refused because the connection's user holds too much memory.
    fn lacks_memory(&self, payload: &Pieces<P>) -> bool {
        self.charge.most_received().is_some_and(|most| {
            let len: u32 = payload.iter().map(|piece| piece.len() as u32 + PIECE).sum();
            self.receive.memory() + len > most
        })
    }

    /// Records the length of an arriving segment's data.
    pub(super) fn note_segment_len(&mut self, len: u32, config: &Config) {
        let len = len.min(config.mss.into()) as u16;
        self.rx.largest_segment = self.rx.largest_segment.max(len);
    }

    /// Answers data that arrives after the owner has closed: with a reset, like a segment of no connection (RFC 9293 3.6.1, RFC 1122 4.2.2.13).
    pub(super) fn refuse_data(&self, header: &Header, effects: &mut Effects) -> Refusal {
        effects.reset = Some(Box::new(reset_for_ack(header.ack)));
        effects.end = Some(End::Closed(CloseReason::Aborted));
        Refusal::DataAfterClose
    }

    /// Reports whether the owner closed the connection, or shut down both directions.
    pub(super) fn wants_no_data(&self) -> bool {
        let shut = self.marks.contains(Marks::READ_SHUT | Marks::SEND_CLOSED);
        self.marks.contains(Marks::RECEIVE_CLOSED) || shut
    }

    /// Makes the next ACK report data that had arrived before (RFC 2883). Of several duplicates before that ACK, it reports the first
    /// and those adjacent to it, since they may be parts of a segment that was merged from others (RFC 2883 4.2.2).
    fn note_duplicate(&mut self, config: &Config, start: SeqNr, end: SeqNr) {
        if !self.options.sack || !config.duplicate_sack {
            return;
        }
        match &mut self.rx.duplicate {
            Some(first) if first.end == start => first.end = end,
            Some(_) => {}
            none => *none = Some(SackBlock { start, end }),
        }
    }

    pub(super) fn take_fin(&mut self, effects: &mut Effects) {
        effects.peer_closed = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => effects.end = Some(End::TimeWait),
            _ => unreachable!("a FIN is taken only where data is"),
        }
    }
}

/// The answer to an ACK of what was never sent (RFC 9293 3.10.7.3).
pub(crate) fn reset_for_ack(ack: SeqNr) -> Header {
    Header {
        seq: ack,
        flags: Flags::RST,
        ..Header::default()
    }
}

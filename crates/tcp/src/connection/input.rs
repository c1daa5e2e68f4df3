//! Processing of an arriving segment (RFC 9293 3.10.7), in the order of the RFC's steps.

use super::urgent::urgent_end;
use super::{
    Connection, Context, DEFAULT_MSS_V4, DEFAULT_MSS_V6, Effects, End, LARGEST_SHIFT, LEAST_MSS,
    Marks, TIMESTAMPS_LEN,
};
use crate::clock::Past;
use crate::config::Config;
use crate::payload::{cut_front, truncate};
use crate::segment::Segment;
use crate::types::{CloseReason, Refusal, State};
use baton_wire::{Flags, Header, Payload, Pieces, SackBlock, SeqNr, Span, Time};
use std::net::IpAddr;

/// Time after which TS.Recent is no longer valid (RFC 7323 5.5).
pub(super) const RECENT_VALID: Span = Span::from_secs(24 * 24 * 3600);

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
            // Without ACK anybody could have sent it.
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
            let asked = self.asks_fast_open();
            self.rx.edge = self.rx.next + u32::from(self.syn_window(cx.config));
            self.establish(cx, header, effects);
            if asked {
                self.take_answer_text(cx, header, payload, effects)?;
            }
            self.owe_ack();
        } else {
            // Simultaneous open: the SYN goes again, with an ACK (RFC 9293 3.5).
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
        if self.state == State::SynReceived
            && header.flags.contains(Flags::SYN)
            && header.seq == self.rx.irs
        {
            self.syn_again(cx.config, header)?;
        }
        let mut fin = header.flags.contains(Flags::FIN);
        let urgent_end = urgent_end(header);
        self.check_timestamp(cx, header, payload)?;
        let current = self.check_sequence(cx, header, payload, &mut fin)?;
        if header.flags.contains(Flags::RST) {
            return self.take_reset(cx, header.seq, effects);
        }
        if header.flags.contains(Flags::SYN) {
            // Challenge ACK (RFC 5961 4.2).
            self.challenge(cx);
            return Err(Refusal::SynInConnection);
        }
        if !header.flags.contains(Flags::ACK) {
            return Err(Refusal::NoAck);
        }
        if self.state == State::SynReceived {
            let first = self.tx.iss + 1;
            if header.ack.before(first) || header.ack.after(self.tx.max.latest(first)) {
                effects.reset = Some(Box::new(reset_for_ack(header.ack)));
                return Err(Refusal::BadAck);
            }
            self.establish(cx, header, effects);
            self.update_first_window(header);
        }
        let carries = !current || !payload.is_empty() || effects.established;
        if !payload.is_empty() {
            self.take_congestion_mark(cx, *ecn, header.flags);
        }
        self.take_ack(cx, header, carries, effects)?;
        // Only now: a segment whose ACK is not acceptable may come from anybody.
        self.last_received_at = Past::at(cx.now);
        self.timers.keepalive_probes = 0;
        self.take_timestamp(cx.now, header);
        if let Some(end) = urgent_end
            && effects.end.is_none()
        {
            self.take_urgent(end, effects);
        }
        if effects.end.is_none() {
            return self.take_text(cx, header, payload, fin, effects);
        }
        Ok(())
    }

    /// The SYN again while the handshake is under way. Alone: our answer was lost. With an ACK: simultaneous open, and
    /// what follows the SYN counts (RFC 9293 3.5, figure 7).
    fn syn_again(&mut self, config: &Config, header: &mut Header) -> Result<(), Refusal> {
        if header.flags.contains(Flags::RST) {
            return Ok(());
        }
        self.notification.take_syn_again(header.flags);
        if header.flags.contains(Flags::ACK) && !self.marks.contains(Marks::PASSIVE) {
            if self.tx.max.after(self.tx.iss + 1) {
                // Data of both ends crossed: an ACK reports this end's state to the peer, as in Linux.
                let syn = header.seq;
                self.note_duplicate(config, syn, syn + 1);
                self.owe_ack();
            }
            header.flags.remove(Flags::SYN);
            header.seq += 1;
            return Ok(());
        }
        self.send_syn_again();
        Err(Refusal::OutOfWindow)
    }

    fn update_first_window(&mut self, header: &Header) {
        self.tx.window = u32::from(header.window) << self.options.send_shift;
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
    ) -> Result<bool, Refusal> {
        let (flags, seq) = (header.flags, &mut header.seq);
        let (next, edge) = (self.rx.next, self.rx.edge.latest(self.rx.next));
        let data_len: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        let len = data_len + u32::from(*fin) + u32::from(flags.contains(Flags::SYN));
        let end = *seq + len;
        let old = if len == 0 {
            seq.before(next)
        } else {
            end.at_or_before(next)
        };
        // At the edge itself an ACK or a FIN needs no space; at a closed window data is cut and the rest counts.
        let beyond = seq.after(edge) || (*seq == edge && data_len > 0 && *seq != next);
        if old || beyond {
            if flags.contains(Flags::RST) {
                return Err(Refusal::OutOfWindow);
            }
            self.answer_unacceptable(cx, data_len > 0);
            if old && data_len > 0 {
                // The peer did not get our ACKs: send more of them.
                self.start_quick_acks(cx.config);
                self.marks.remove(Marks::INTERACTIVE);
                self.note_duplicate(cx.config, *seq, end);
            }
            return if old && len == 0 {
                Ok(false)
            } else {
                Err(Refusal::OutOfWindow)
            };
        }
        if seq.before(next) {
            let overlap = next - *seq;
            self.note_duplicate(cx.config, *seq, next);
            cut_front(payload, overlap.min(data_len) as usize);
            *seq = next;
            self.owe_ack();
        }
        let data_end = end - u32::from(*fin);
        if data_end.after(edge) {
            truncate(payload, (edge - *seq) as usize);
            *fin = false;
            self.owe_ack();
        }
        Ok(true)
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
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if (payload.is_empty() && !fin) || !self.receives() {
            return Ok(());
        }
        let seq = header.seq;
        if !payload.is_empty() {
            if self.wants_no_data() {
                return Err(self.refuse_data(header, effects));
            }
            self.note_data_arrival(cx);
        }
        let len: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        self.note_segment_len(len, cx.config);
        if seq != self.rx.next {
            // Out of order: an immediate ACK of its own, so that the sender can count duplicates (RFC 5681 4.2).
            self.rx.acks_owed = self.rx.acks_owed.saturating_add(1);
            self.counts.out_of_order_segments = self.counts.out_of_order_segments.wrapping_add(1);
            if let Some(known) = self.receive.known_part(seq, seq + len) {
                self.note_duplicate(cx.config, known.start, known.end);
            }
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

    /// A segment with so much data arrived.
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
        if self.options.sack && config.duplicate_sack {
            self.rx.duplicate = Some(SackBlock { start, end });
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

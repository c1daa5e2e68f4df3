//! Header prediction: a fast path for the usual case (Jacobson, "4BSD TCP header prediction", Computer Communication Review 20(2),
//! 1990).
//!
//! While nothing is missing in either direction, the next segment in sequence that holds only an ACK and data passes every check
//! of RFC 9293 3.10.7.4, and its ACK neither starts, ends nor undoes a recovery, nor reports anything. The fast path applies
//! only the rules that remain. Both paths lead to the same state of the connection, which the tests verify.

use super::feedback::Taken;
use super::repair::Switches;
use super::{Connection, Context, Effects, Marks};
use crate::clock::Past;
use crate::congestion::{Acked, Phase};
use crate::segment::Segment;
use crate::types::State;
use baton_wire::{Flags, Header, Payload, Time};

impl<P: Payload> Connection<P> {
    /// Reports whether nothing is known to be missing: no loss is being repaired or in doubt, no tail is being probed, nothing was
    /// reported or received out of order.
    fn is_undisturbed(&self) -> bool {
        #[cfg(test)]
        if !tests::is_allowed() {
            return false;
        }
        self.state == State::Established
            && self.keeps_times()
            && self.congestion.phase == Phase::Open
            && self.repair.is_undisturbed()
            && self.reported() == 0
            && !self.receive.has_holes()
    }

    /// Returns the invariant that is violated, if any: what arrived beyond data in flight was reported.
    pub(super) fn verify_prediction(&self) -> Result<(), &'static str> {
        let first = self.repair.flight.first();
        let overtaken = first.is_some_and(|first| self.repair.rack.overtaken_by(first.end) > 0);
        match self.is_undisturbed() && overtaken {
            false => Ok(()),
            true => Err("what arrived beyond a hole was reported"),
        }
    }

    /// Reports whether the segment, which holds `len` bytes of data, is the next in sequence and may take the fast path.
    #[inline(always)]
    pub(crate) fn is_predicted(&self, segment: &Segment<P>, len: u32) -> bool {
        let header = &segment.header;
        header.flags.difference(Flags::PSH) == Flags::ACK
            && header.seq == self.rx.next
            && header.options.sack.is_empty()
            && self.is_undisturbed()
            && self.notification.is_indifferent_to(segment.ecn)
            && len <= self.rx.edge.saturating_since(self.rx.next)
            && self.charge.most_received().is_none()
            && self.is_timely(header)
            && self.acknowledges_simply(header)
    }

    /// Reports whether the segment passes PAWS (RFC 7323 5.3).
    fn is_timely(&self, header: &Header) -> bool {
        !self.options.timestamps
            || header
                .options
                .timestamps
                .is_some_and(|it| it.value.wrapping_sub(self.options.recent) as i32 >= 0)
    }

    /// Reports whether the segment acknowledges something new that was sent, or there is nothing to acknowledge.
    fn acknowledges_simply(&self, header: &Header) -> bool {
        let (ack, una, max) = (header.ack, self.tx.una, self.tx.max);
        ack.at_or_before(max) && (ack.after(una) || (ack == una && una == max))
    }

    /// Processes a predicted segment with `len` bytes of data.
    #[inline]
    pub(crate) fn take_alone(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment<P>,
        len: u32,
        effects: &mut Effects,
    ) {
        self.counts.segments_in = self.counts.segments_in.wrapping_add(1);
        self.take_predicted(cx, &segment.header, len, effects);
        self.receive.append(&mut segment.payload);
    }

    /// Processes a predicted segment, except that the caller appends its `len` bytes of data to the receive buffer.
    #[inline(always)]
    pub(super) fn take_predicted(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        len: u32,
        effects: &mut Effects,
    ) {
        #[cfg(test)]
        tests::count();
        self.timers.unanswered = 0;
        self.soft_error = None;
        let window = u32::from(header.window) << self.options.send_shift;
        if header.ack == self.tx.una {
            self.update_window(header, window);
            let now = self.clock.moment(cx.now);
            let (una, max) = (self.tx.una, self.tx.max);
            self.repair.rate.delivered(0, now, una, max);
        } else {
            self.take_predicted_ack(cx, header, window, effects);
        }
        self.last_received_at = Past::at(cx.now);
        self.timers.keepalive_probes = 0;
        self.take_timestamp(cx.now, header, header.seq);
        if len > 0 {
            self.take_predicted_data(cx, len, effects);
        }
    }

    /// Does what [`Connection::take_ack`] does for a predicted segment.
    fn take_predicted_ack(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        window: u32,
        effects: &mut Effects,
    ) {
        let ack = header.ack;
        let acked = ack - self.tx.una;
        let now = self.clock.moment(cx.now);
        self.note_app_limit();
        let arrived = self.repair.flight.advance_in_order(ack);
        let rtts = arrived.map(|arrived| self.repair.rack.arrived_in_order(&arrived, now));
        let timed = self.measure(cx, header, rtts.map(|(first, _)| first));
        let rtt = rtts.map(|(_, last)| last).or(timed);
        self.advance_una(cx, ack, acked, effects);
        if self.search.is_some() {
            self.judge_mtu_probe(cx.stats);
        }
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.advance(ack);
        }
        self.notification.keep_near(ack);
        self.restart_retransmit(cx);
        if self.send.is_empty() {
            self.timers.persist = Time::NEVER;
        }
        self.update_window(header, window);
        let max = self.tx.max;
        let repair = &mut self.repair;
        repair.rate.delivered(acked, now, ack, max);
        let segments = arrived.map_or(0, |arrived| arrived.segments);
        repair.delivered = repair.delivered.wrapping_add(segments);
        repair.rack.note_duplicates(false, ack, max);
        self.congestion.keep_mark_near(ack);
        self.stop_reordering_timer();
        let growth = Acked {
            now,
            bytes: acked,
            smss: self.smss(),
            rtt,
            srtt: self.rtt.srtt(),
        };
        self.congestion.grow(&growth, ack, max);
        self.restart_probe(cx);
        if let (Some(feedback), Some(arrived)) = (&mut self.feedback, &arrived) {
            feedback.rates.arrived(&arrived.last);
        }
        self.count_for_rates(now, acked);
        let taken = Taken {
            acked,
            delivered: acked,
            rtt,
            echoes_congestion: false,
        };
        self.tell_ack(now, taken);
    }

    /// Does what [`Connection::take_text`] does for a predicted segment.
    fn take_predicted_data(&mut self, cx: &mut Context<'_>, len: u32, effects: &mut Effects) {
        self.note_data_arrival(cx);
        self.note_segment_len(len, cx.config);
        self.counts.bytes_received += u64::from(len);
        self.rx.next += len;
        if !self.marks.contains(Marks::READABLE_TOLD) {
            effects.readable = true;
        }
        self.acknowledge_text(cx, false);
    }

    /// Reports whether only new data and an ACK can be due: nothing is to be sent again, nothing is probed and nothing is held
    /// back.
    pub(super) fn sends_only_new(&self) -> bool {
        let asked = Marks::SEND_FIRST_AGAIN
            | Marks::PROBE
            | Marks::KEEPALIVE_PROBE
            | Marks::DEFERRED
            | Marks::SETTLING;
        #[cfg(test)]
        if !tests::is_allowed() {
            return false;
        }
        self.state == State::Established
            && self.tx.next == self.tx.max
            && !self.marks.intersects(asked)
            && self.keeps_times()
            && self.congestion.phase == Phase::Open
            && !self.repair.is_on(Switches::PROBE_TAIL)
            && self.repair.is_undisturbed()
            && self.reported() == 0
    }

    /// Reports whether everything was sent, where only new data and an ACK can be due.
    pub(super) fn has_sent_it_all(&self) -> bool {
        self.tx.next == self.data_end() && self.rx.acks_owed == 0 && self.rx.given_back == 0
    }
}

#[cfg(test)]
mod tests;

//! Immediate and delayed acknowledgments (RFC 9293 3.8.6.3, RFC 5681 4.2), and how often an unacceptable segment is
//! answered.

use super::{Connection, Context, Marks};
use crate::clock::Past;
use crate::config::Config;
use baton_wire::{Payload, Span, Time};

/// Assumed minimum length of a peer's full segments, bytes (RFC 9293 3.7.1).
const LEAST_FULL_SEGMENT: u16 = 536;

/// Minimum number of segments that quick ACKs acknowledge, if any, however small the window is.
const LEAST_QUICK_ACKS: u32 = 2;

impl<P: Payload> Connection<P> {
    /// Acknowledges in-order data, immediately or when the timer for delayed ACKs expires.
    pub(super) fn acknowledge_text(&mut self, cx: &Context<'_>, at_once: bool) {
        let unacknowledged = self.rx.next - self.rx.last_ack;
        let quick = self.rx.quick_acks > 0 && !self.marks.contains(Marks::INTERACTIVE);
        if at_once || quick || self.acknowledges_now(unacknowledged, cx.config) {
            self.owe_ack();
        } else if self.timers.delayed_ack == Time::NEVER {
            self.timers.delayed_ack = cx.now + Span::from_ms(cx.config.delayed_ack_ms.into());
        }
    }

    fn acknowledges_now(&self, unacknowledged: u32, config: &Config) -> bool {
        let every = config.ack_every_segments;
        let largest = self.rx.largest_segment;
        if config.eager_acks {
            let full = largest.max(LEAST_FULL_SEGMENT.min(config.mss));
            unacknowledged > (every - 1).saturating_mul(full.into())
        } else {
            unacknowledged >= every.saturating_mul(largest.into())
        }
    }

    /// Records that data arrived. The first data, and data after an idle time, starts quick ACKs, so as not to slow down the
    /// peer's slow start.
    pub(super) fn note_data_arrival(&mut self, cx: &Context<'_>) {
        let idle = self.last_data_at.elapsed(cx.now) > self.rtt.rto(cx.config);
        if !self.has_heard_data() || idle {
            self.start_quick_acks(cx.config);
        }
        self.counts.data_segments_in = self.counts.data_segments_in.wrapping_add(1);
        self.last_data_at = Past::at(cx.now);
    }

    /// Acknowledges the next segments immediately, but no more of them than half a window holds.
    pub(super) fn start_quick_acks(&mut self, config: &Config) {
        let window = self.rx.edge.saturating_since(self.rx.next);
        let full = u32::from(self.rx.largest_segment.max(LEAST_FULL_SEGMENT));
        let most = (window / (2 * full)).max(LEAST_QUICK_ACKS);
        let count = config.quick_acks.min(most).min(u8::MAX.into()) as u8;
        self.rx.quick_acks = self.rx.quick_acks.max(count);
    }

    /// Records that data is sent. Soon after data arrived it counts as an answer, so that the next ACK can travel with an answer too.
    pub(super) fn note_answer(&mut self, cx: &Context<'_>) {
        let soon = Span::from_ms(cx.config.delayed_ack_ms.into());
        if self.has_heard_data() && self.last_data_at.elapsed(cx.now) < soon {
            self.marks.insert(Marks::INTERACTIVE);
        }
    }

    /// Records that an ACK is sent.
    pub(super) fn note_ack_sent(&mut self) {
        if self.rx.next != self.rx.last_ack {
            self.rx.quick_acks = self.rx.quick_acks.saturating_sub(1);
        }
    }

    /// Answers an unacceptable segment (RFC 9293 3.10.7.4, first). Limits the answers to segments without data, because two
    /// ends that disagree would answer each other for ever.
    pub(super) fn answer_unacceptable(&mut self, cx: &mut Context<'_>, has_data: bool) {
        if has_data || self.may_answer_refused(cx) {
            self.owe_ack();
        }
    }

    /// Answers what may be a blind attack, or a peer that lost its state (RFC 5961 3.2, 4.2, 5.2).
    pub(super) fn challenge(&mut self, cx: &mut Context<'_>) {
        if !self.may_answer_refused(cx) {
            return;
        }
        if cx
            .challenges
            .take(cx.now, cx.config.challenge_acks_per_second)
        {
            cx.stats.challenge_acks += 1;
            self.owe_ack();
        } else {
            cx.stats.acks_withheld += 1;
        }
    }

    fn may_answer_refused(&mut self, cx: &mut Context<'_>) -> bool {
        let interval = Span::from_ms(cx.config.ack_rate_limit_ms.into());
        if self.last_refusal_at.elapsed(cx.now) < interval {
            cx.stats.acks_withheld += 1;
            return false;
        }
        self.last_refusal_at = Past::at(cx.now);
        true
    }
}

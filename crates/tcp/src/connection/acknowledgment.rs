//! Processing of an arriving acknowledgment (RFC 9293 3.10.7.4, fifth).

use super::feedback::Taken;
use super::input::RECENT_VALID;
use super::{Connection, Context, Effects, End, Marks};
use crate::clock::{Past, TIMESTAMP_TICK};
use crate::config::Config;
use crate::rack::Delivery;
use crate::rtt::Timed;
use crate::types::{CloseReason, Refusal, State};
use baton_wire::{Flags, Header, Payload, SeqNr, Span, Time};

impl<P: Payload> Connection<P> {
    /// Establishes the connection: this segment acknowledges our SYN, so that both SYNs are acknowledged.
    pub(super) fn establish(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        effects: &mut Effects,
    ) {
        let fast = self.is_opened_fast();
        let mut refused = 0;
        if !fast {
            self.tx.una = self.tx.iss + 1;
            self.tx.next = self.tx.una;
            self.tx.partial_end = self.tx.una;
            refused = self.take_fast_open_answer(cx, header, effects);
        }
        self.state = State::Established;
        self.marks.remove(Marks::SYN_ACK_DUE);
        self.timers.retries = 0;
        if self.marks.contains(Marks::SYN_LOST) {
            self.rtt.syn_was_lost(cx.config);
        }
        if let Some(timed) = self.timed
            && timed.end == self.tx.iss + 1
        {
            self.timed = None;
            let rtt = timed.sent.elapsed(cx.now);
            self.take_round_trip(cx.config, rtt, self.tx.una);
            self.repair.rack.sample(self.clock.moment(cx.now), rtt);
        }
        self.choose_mtu_probing(self.clock.moment(cx.now), cx.config);
        self.restart_retransmit(cx);
        if !fast || self.marks.contains(Marks::SYN_LOST) {
            let initial = self.initial_window(cx.config);
            self.congestion.start(initial, self.tx.una, cx.config);
        }
        if !fast {
            self.introduce_controller(cx.now);
        }
        if self.marks.contains(Marks::SEND_CLOSED) {
            self.state = State::FinWait1;
        }
        if cx.config.linux.silence_from_establishment {
            self.last_data_at = Past::at(cx.now);
        }
        self.send_syn_data_again(cx, refused);
        self.start_keepalive(cx.now, cx.config);
        // Data may have come with a simultaneous SYN.
        effects.readable = !fast && self.receive.ready_len() > 0;
        effects.established = true;
        effects.new_ack = true;
    }

    /// Processes the acknowledgment field, window and SACK blocks of an acceptable segment.
    pub(super) fn take_ack(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        carries: bool,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let ack = header.ack;
        // RFC 5961 5.2: neither beyond what was sent nor older than any window.
        if ack.after(self.tx.max) || ack.before(self.tx.una - self.tx.largest_window) {
            self.challenge(cx);
            return Err(Refusal::BadAck);
        }
        self.timers.unanswered = 0;
        self.soft_error = None;
        if ack.before(self.tx.una) {
            self.overtaken_ack(cx, header);
            return Ok(());
        }
        let window = self.window_of(header);
        if self.expects_nothing(header) {
            self.update_window(header, window);
            let now = self.clock.moment(cx.now);
            let (una, max) = (self.tx.una, self.tx.max);
            self.repair.rate.delivered(0, now, una, max);
            return Ok(());
        }
        self.note_app_limit();
        let mut delivery = self.delivery(cx.now, header);
        if delivery.echoes_congestion {
            self.take_congestion_echo(cx, ack);
        }
        self.count_duplicate_report(cx, &delivery);
        if ack == self.tx.una {
            let same_window = window == self.tx.window;
            self.update_window(header, window);
            let reported = self.take_reports(header, &mut delivery);
            let plain =
                !carries && same_window && !header.flags.intersects(Flags::SYN | Flags::FIN);
            // RFC 6675 2 with SACK, RFC 5681 2 without. Answers to window probes do not count as duplicates.
            let outstanding = self.timers.retransmit != Time::NEVER;
            let duplicate = outstanding && if self.options.sack { reported } else { plain };
            self.measure_reported(cx, &delivery);
            self.nothing_new_acked(cx, header, &delivery, duplicate);
            self.tell_ack(delivery.now, Taken::of(&delivery));
            return Ok(());
        }
        self.new_ack(cx, header, &mut delivery, effects);
        self.update_window(header, window);
        self.take_reports(header, &mut delivery);
        self.count_delivered(&delivery);
        if self.keeps_times() {
            self.settle(cx, header, &delivery);
        } else {
            self.reduce_rate(&delivery, false);
        }
        self.tell_ack(delivery.now, Taken::of(&delivery));
        Ok(())
    }

    /// Processes an ACK that a later one overtook. The data that it reports may still be new (RFC 2018 5).
    fn overtaken_ack(&mut self, cx: &mut Context<'_>, header: &Header) {
        if !self.options.sack || header.options.sack.is_empty() {
            return;
        }
        let mut delivery = self.delivery(cx.now, header);
        delivery.echoes_congestion = false;
        let reported = self.take_reports(header, &mut delivery);
        self.count_duplicate_report(cx, &delivery);
        if reported || delivery.duplicate.is_some() {
            self.measure_reported(cx, &delivery);
            self.nothing_new_acked(cx, header, &delivery, reported);
            self.tell_ack(delivery.now, Taken::of(&delivery));
        }
    }

    fn count_duplicate_report(&mut self, cx: &mut Context<'_>, delivery: &Delivery) {
        if delivery.duplicate.is_some() {
            self.repair.duplicates = self.repair.duplicates.saturating_add(1);
            cx.stats.duplicate_reports += 1;
        }
    }

    /// Reports whether this ACK can change nothing but the window, because everything is acknowledged and nothing is in doubt.
    /// True of nearly every segment of a peer that only sends.
    fn expects_nothing(&self, header: &Header) -> bool {
        header.ack == self.tx.una
            && self.tx.una == self.tx.max
            && header.options.sack.is_empty()
            && !header.flags.contains(Flags::ECE)
            && self.repair.episode.is_none()
            && self.repair.tail.is_none()
    }

    /// Returns the record in which the findings about this ACK are collected.
    fn delivery(&self, now: Time, header: &Header) -> Delivery {
        let echo = match self.options.timestamps {
            true => header.options.timestamps.map(|it| it.echo),
            false => None,
        };
        Delivery {
            now: self.clock.moment(now),
            echo: echo.filter(|&echo| echo != 0),
            recover: self.congestion.recover,
            acked: 0,
            delivered: 0,
            reported: 0,
            segments: 0,
            first_rtt: None,
            last_rtt: None,
            original: false,
            reordering: 0,
            duplicate: self.reported_duplicate(header),
            echoes_congestion: header.flags.contains(Flags::ECE) && self.notification.is_agreed(),
        }
    }

    /// Processes an ACK that acknowledges nothing new. `duplicate` says that it may still indicate a loss.
    fn nothing_new_acked(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        delivery: &Delivery,
        duplicate: bool,
    ) {
        self.count_delivered(delivery);
        if self.keeps_times() {
            self.settle(cx, header, delivery);
        } else {
            self.undo_if_spurious(delivery, cx.stats);
            if duplicate {
                self.forward_rto(delivery, cx.stats);
                self.duplicate_ack(cx.stats, delivery);
            }
            self.reduce_rate(delivery, false);
        }
    }

    /// Updates the delivery counters and the delivery rate.
    fn count_delivered(&mut self, delivery: &Delivery) {
        let segments = match self.keeps_times() {
            true => delivery.segments,
            false => delivery.delivered.div_ceil(self.smss()),
        };
        self.count_for_rates(delivery.now, delivery.delivered);
        self.take_reordering(delivery);
        let repair = &mut self.repair;
        repair
            .rate
            .delivered(delivery.delivered, delivery.now, self.tx.una, self.tx.max);
        repair.delivered = repair.delivered.wrapping_add(segments);
        if delivery.echoes_congestion {
            repair.delivered_marked = repair.delivered_marked.wrapping_add(segments);
        }
    }

    /// Processes an ACK that moves SND.UNA.
    fn new_ack(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        delivery: &mut Delivery,
        effects: &mut Effects,
    ) {
        let ack = header.ack;
        let acked = ack - self.tx.una;
        let fin_acked = self.fin_sent() && ack.after(self.data_end());
        let data_acked = acked - u32::from(fin_acked);
        if self.keeps_times() {
            self.note_arrivals(ack, delivery);
        }
        let timed = self.measure(cx, header, delivery.first_rtt);
        delivery.last_rtt = delivery.last_rtt.or(timed);
        self.advance_una(cx, ack, data_acked, effects);
        if self.search.is_some() {
            self.judge_mtu_probe(cx.stats);
        }
        if self.progress(cx, acked, delivery) || self.flight() == 0 {
            self.restart_retransmit(cx);
        }
        if fin_acked {
            self.fin_acknowledged(effects);
        }
        if self.send.is_empty() && !self.fin_pending() {
            self.timers.persist = Time::NEVER;
        }
    }

    /// Moves SND.UNA to `ack`, which acknowledges `data_acked` bytes of data.
    #[inline(always)]
    pub(super) fn advance_una(
        &mut self,
        cx: &Context<'_>,
        ack: SeqNr,
        data_acked: u32,
        effects: &mut Effects,
    ) {
        self.send.release(data_acked);
        self.counts.bytes_acked += u64::from(data_acked);
        self.tx.window = self.tx.window.saturating_sub(ack - self.tx.una);
        self.tx.una = ack;
        self.tx.next = self.tx.next.latest(ack);
        self.tx.partial_end = self.tx.partial_end.latest(ack);
        self.boundaries.release(ack);
        self.marks.remove(Marks::MORE);
        if self.marks.contains(Marks::URGENT) {
            self.urgent_acknowledged();
        }
        self.start_waiting(cx.now);
        self.timers.retries = 0;
        effects.acknowledged += data_acked;
        effects.new_ack = true;
    }

    /// Restarts the retransmission timer after an acknowledgment of something new (RFC 6298 5.2, 5.3).
    #[inline]
    pub(super) fn restart_retransmit(&mut self, cx: &Context<'_>) {
        if self.flight() == 0 {
            self.timers.retransmit = Time::NEVER;
            self.timers.loss = Time::NEVER;
        } else if self.timers.persist == Time::NEVER {
            self.timers.retransmit = self.due(cx, self.rtt.rto(cx.config));
        }
    }

    /// Measures the round trip, if this ACK completes a measurement (RFC 6298 3, RFC 7323 4). `first_rtt` is the round-trip time of
    /// the first newly delivered segment that was sent only once. Returns that of the timed segment, if there was one.
    #[inline]
    pub(super) fn measure(
        &mut self,
        cx: &Context<'_>,
        header: &Header,
        first_rtt: Option<Span>,
    ) -> Option<Span> {
        let often = cx.config.linux.round_trip_each_ack;
        if let (true, Some(rtt)) = (often, first_rtt) {
            self.timed = self.timed.filter(|timed| header.ack.before(timed.end));
            self.take_round_trip(cx.config, rtt, header.ack);
            return None;
        }
        if let Some(Timed { end, sent, .. }) = self.timed {
            if header.ack.before(end) {
                return None;
            }
            self.timed = None;
            let rtt = sent.elapsed(cx.now);
            self.take_round_trip(cx.config, rtt, header.ack);
            return Some(rtt);
        }
        if let Some(rtt) = first_rtt {
            // Other segments were retransmitted, but this one was sent only once.
            self.take_round_trip(cx.config, rtt, header.ack);
            return None;
        }
        // A segment was sent again. The echoed timestamp shows which copy is acknowledged.
        if let (true, Some(timestamps)) = (self.options.timestamps, header.options.timestamps) {
            let ticks = self.clock.value(cx.now).wrapping_sub(timestamps.echo);
            if timestamps.echo != 0 && ticks < i32::MAX as u32 {
                let rtt = TIMESTAMP_TICK * u64::from(ticks);
                self.take_round_trip(cx.config, rtt, header.ack);
            }
        }
        None
    }

    /// Measures the round trip by an ACK that acknowledges nothing new but reports a segment that was sent once.
    fn measure_reported(&mut self, cx: &Context<'_>, delivery: &Delivery) {
        if let (true, Some(rtt)) = (cx.config.linux.round_trip_each_ack, delivery.first_rtt) {
            self.take_round_trip(cx.config, rtt, self.tx.una);
        }
    }

    /// Passes a measured round trip to the estimator; everything up to `una` is acknowledged.
    #[inline]
    fn take_round_trip(&mut self, config: &Config, rtt: Span, una: SeqNr) {
        match config.linux.round_trip_each_ack {
            true => self.rtt.sample_often(rtt, una, self.tx.max, config),
            false => self.rtt.sample(rtt, config),
        }
    }

    fn fin_acknowledged(&mut self, effects: &mut Effects) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => effects.end = Some(End::TimeWait),
            State::LastAck => effects.end = Some(End::Closed(CloseReason::Normal)),
            _ => unreachable!("a FIN is pending in three states only"),
        }
    }

    /// SEG.WND, which is not scaled in a SYN (RFC 7323 2.2).
    pub(super) fn window_of(&self, header: &Header) -> u32 {
        let shift = match header.flags.contains(Flags::SYN) {
            true => 0,
            false => self.options.send_shift,
        };
        u32::from(header.window) << shift
    }

    /// Updates SND.WND, unless the segment is older than the one that last set it.
    #[inline]
    pub(super) fn update_window(&mut self, header: &Header, window: u32) {
        let tx = &mut self.tx;
        let newer = tx.window_seq.before(header.seq)
            || (tx.window_seq == header.seq && tx.window_ack.at_or_before(header.ack));
        if newer {
            tx.window = window;
            tx.window_seq = header.seq;
            tx.window_ack = header.ack;
            tx.largest_window = tx.largest_window.max(window);
        }
    }

    /// Updates TS.Recent (RFC 7323 4.3) from a segment that began at `start` before it was trimmed.
    pub(super) fn take_timestamp(&mut self, now: Time, header: &Header, start: SeqNr) {
        if let (true, Some(timestamps)) = (self.options.timestamps, header.options.timestamps) {
            let newer = timestamps.value.wrapping_sub(self.options.recent) as i32 >= 0
                || self.recent_at.elapsed(now) > RECENT_VALID;
            if newer && start.at_or_before(self.rx.last_ack) {
                self.options.recent = timestamps.value;
                self.recent_at = Past::at(now);
            }
        }
    }

    /// Requests an ACK without delay. One ACK satisfies several requests.
    pub(super) fn owe_ack(&mut self) {
        self.rx.acks_owed = self.rx.acks_owed.max(1);
    }
}

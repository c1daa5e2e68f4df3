//! Detection of losses by time, and probes for lost tails (RACK-TLP, RFC 8985).

use super::output::Run;
use super::repair::{LossTimer, Switches, TailProbe};
use super::{Connection, Context, Marks};
use crate::clock::Moment;
use crate::config::Config;
use crate::congestion::{DUPLICATE_THRESHOLD, Loss, Needs, Phase};
use crate::rack::Delivery;
use baton_wire::Payload;
use baton_wire::{Header, SeqNr, Span, Time};

/// TLP.max_ack_delay (RFC 8985 7.2): time that a receiver may take to acknowledge a single segment.
const LARGEST_ACK_DELAY: Span = Span::from_ms(200);

/// PTO before the first measurement (RFC 8985 7.2).
const FIRST_PROBE: Span = Span::from_secs(1);

/// Least PTO: short round trips are measured less accurately, and the receiver needs time too.
const SOONEST_PROBE: Span = Span::from_ms(2);

impl<P: Payload> Connection<P> {
    /// Reports whether RACK-TLP is in use, which keeps transmission times of everything in flight.
    pub(super) fn keeps_times(&self) -> bool {
        self.options.sack && self.repair.is_on(Switches::RACK_TLP) && self.is_synchronized()
    }

    /// Estimate of the bytes in the network: neither reported nor lost.
    pub(super) fn in_network(&self) -> u32 {
        self.flight() - self.reported() - self.repair.flight.lost()
    }

    /// Bytes sent again that may still be in flight.
    pub(super) fn sent_again(&self) -> u32 {
        self.repair.flight.again_segments() * self.smss()
    }

    /// Bytes that the peer reported.
    pub(super) fn reported(&self) -> u32 {
        self.scoreboard.as_ref().map_or(0, |board| board.sacked())
    }

    /// Records the arrival of segments up to `ack`, before SND.UNA moves.
    pub(super) fn note_arrivals(&mut self, ack: SeqNr, delivery: &mut Delivery) {
        let (una, smss) = (self.tx.una, self.smss());
        let (repair, feedback) = (&mut self.repair, &mut self.feedback);
        let rack = &mut repair.rack;
        repair.flight.advance(una, ack, |sent| {
            rack.arrived(sent, smss, delivery);
            if let Some(feedback) = feedback {
                feedback.rates.arrived(sent);
            }
        });
    }

    /// Detects and handles losses, given an acknowledgment and its reports.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>, header: &Header, delivery: &Delivery) {
        let (una, max) = (self.tx.una, self.tx.max);
        self.judge_tail(header.ack, delivery);
        let duplicate = delivery.duplicate.is_some();
        self.repair.rack.note_duplicates(duplicate, una, max);
        let recovering = self.congestion.phase == Phase::FastRecovery;
        self.undo_if_spurious(delivery, cx.stats);
        if delivery.acked == 0 && self.timers.retransmit == Time::NEVER {
            // Nothing but window probes is in flight.
            return;
        }
        self.forward_rto(delivery, cx.stats);
        let ended = self.end_recovery_if_due();
        let lost = self.detect_losses(cx, delivery.delivered, ended);
        // Where packets are known to be reordered, Linux treats reports like acknowledgments (tcp_may_raise_cwnd).
        let reorders = cx.config.linux.adaptive_threshold
            && self.repair.duplicate_threshold() > u32::from(DUPLICATE_THRESHOLD);
        let forward = delivery.acked > 0 || reorders && delivery.delivered > 0;
        if forward && !recovering && self.congestion.phase != Phase::FastRecovery {
            self.grow(cx.now, delivery);
        }
        self.reduce_rate(delivery, lost);
        // An ACK that reports nothing new does not postpone the probe (RFC 8985 7.2).
        if delivery.delivered > 0 {
            self.restart_probe(cx);
        }
    }

    fn end_recovery_if_due(&mut self) -> bool {
        let una = self.tx.una;
        let due = self.congestion.phase != Phase::Open && una.at_or_after(self.congestion.recover);
        if due {
            let (flight, smss) = (self.flight(), self.smss());
            self.congestion.leave_recovery(flight, smss, true);
            self.end_episode();
            self.repair.rack.recovered();
        }
        self.congestion.keep_mark_near(una);
        due
    }

    /// Detects losses (RFC 8985 6.2, step 5). Returns true if there is a new one. `ended` says that a recovery just ended: data
    /// sent during it may be lost.
    fn detect_losses(&mut self, cx: &mut Context<'_>, delivered: u32, ended: bool) -> bool {
        self.stop_reordering_timer();
        let smss = self.smss();
        let repair = &mut self.repair;
        if !repair.flight.is_mixed() {
            return false;
        }
        let recovering = self.congestion.phase != Phase::Open;
        let now = self.clock.moment(cx.now);
        let judgment = repair.rack.judgment(
            now,
            recovering,
            repair.flight.reported_segments(),
            self.rtt.srtt(),
        );
        let Some(judgment) = judgment else {
            return false;
        };
        let (feedback, congestion) = (&mut self.feedback, &mut self.congestion);
        let probe = self.search.as_ref().and_then(|search| search.probe);
        let found = repair.flight.detect(self.tx.una, &judgment, |sent, len| {
            // The loss of an MTU probe is no sign of congestion.
            let counts = probe.is_none_or(|probe| probe.end != sent.end);
            if let (true, Some(feedback)) = (counts, &mut *feedback) {
                feedback.lost(congestion, now, sent, len, smss);
            }
        });
        if found.wait > Span::ZERO && self.timers.retransmit != Time::NEVER {
            repair.timer = LossTimer::Reordering;
            self.timers.loss = cx.now + found.wait;
        }
        if !recovering && repair.flight.lost() > 0 && (found.lost || ended) {
            self.repair.tail = None;
            if !self.only_mtu_probe_was_lost(cx.stats) {
                self.enter_recovery(cx.stats, now, delivered);
            }
        }
        found.lost
    }

    /// Stops the reordering timer, since losses are checked now or have been resolved.
    pub(super) fn stop_reordering_timer(&mut self) {
        if self.repair.timer == LossTimer::Reordering {
            self.timers.loss = Time::NEVER;
        }
    }

    /// Handles the loss timer.
    pub(super) fn loss_timeout(&mut self, cx: &mut Context<'_>) {
        self.timers.loss = Time::NEVER;
        match self.repair.timer {
            LossTimer::Reordering => {
                if self.detect_losses(cx, 0, false) {
                    self.reduce_rate_for(0, false);
                }
            }
            LossTimer::Probe => {
                if self.probes_tail() {
                    cx.stats.tail_probes += 1;
                    self.repair.switches.insert(Switches::PROBE_TAIL);
                    // RFC 8985 7.3: the probe gets a whole timeout.
                    self.timers.retransmit = cx.now + self.rtt.rto(cx.config);
                }
            }
        }
    }

    // --- tail loss probes ---

    /// RFC 8985 7.2: something is in flight, nothing is known to be missing, and no probe is in flight.
    fn probes_tail(&self) -> bool {
        self.keeps_times()
            && self.timers.retransmit != Time::NEVER
            && self.congestion.phase == Phase::Open
            && self.repair.tail.is_none()
            && self.reported() == 0
            && !self.is_opened_fast()
    }

    /// TLP_calc_PTO (RFC 8985 7.2). Restarts the timer after new data was sent or something was acknowledged.
    pub(super) fn restart_probe(&mut self, cx: &Context<'_>) {
        if self.repair.timer == LossTimer::Reordering && self.timers.loss != Time::NEVER {
            return;
        }
        self.repair.timer = LossTimer::Probe;
        self.timers.loss = Time::NEVER;
        if !self.probes_tail() {
            return;
        }
        let srtt = self.rtt.srtt();
        let mut timeout = match srtt {
            Span::ZERO => FIRST_PROBE,
            _ => (srtt * 2).max(SOONEST_PROBE),
        };
        if self.flight() <= self.smss() {
            timeout += LARGEST_ACK_DELAY;
        }
        self.timers.loss = (cx.now + timeout).min(self.timers.retransmit);
    }

    /// The probe that is due, if any (RFC 8985 7.3): new data, or else the last segment again.
    pub(super) fn tail_probe_run(&mut self) -> Option<Run> {
        if !self.repair.is_on(Switches::PROBE_TAIL) {
            return None;
        }
        self.repair.switches.remove(Switches::PROBE_TAIL);
        if !self.probes_tail() {
            return None;
        }
        let new = self.can_send_new() && self.tx.next == self.tx.max;
        let run = if new {
            self.new_run()
        } else {
            let (start, end) = self.repair.flight.last(self.tx.una)?;
            self.run_again(start, end)?
        };
        self.repair.tail = Some(TailProbe {
            end: self.tx.max.latest(run.end()),
            again: !new,
        });
        Some(run)
    }

    /// The next segment of new data, as much as the peer's window allows.
    fn new_run(&self) -> Run {
        let seq = self.tx.next;
        let room = self.tx.una + self.tx.window - seq;
        let available = self.data_end() - seq;
        let len = available.min(room).min(self.data_room());
        let fin = self.fin_pending() && len == available && room > len;
        Run { seq, len, fin }
    }

    /// Judges the last probe by an ACK (RFC 8985 7.4.2).
    fn judge_tail(&mut self, ack: SeqNr, delivery: &Delivery) {
        let Some(tail) = self.repair.tail else {
            return;
        };
        if ack.before(tail.end) {
            return;
        }
        let both_arrived = delivery
            .duplicate
            .is_some_and(|block| block.end == tail.end);
        let nothing_new = delivery.acked == 0 && delivery.reported == 0;
        if tail.again && !both_arrived && ack.after(tail.end) {
            // The probe repaired a loss that nothing else revealed.
            let loss = self.loss(delivery.now);
            self.congestion.reduce_once(&loss, false);
            let max = self.tx.max;
            self.notification.reduced(max);
        } else if tail.again && !both_arrived && !nothing_new {
            return;
        }
        self.repair.tail = None;
    }

    // --- proportional rate reduction ---

    /// RFC 9937 6, for each ACK in recovery.
    pub(super) fn reduce_rate(&mut self, delivery: &Delivery, lost: bool) {
        if delivery.delivered > 0 {
            self.reduce_rate_for(delivery.delivered, delivery.acked > 0 && !lost);
        }
    }

    fn reduce_rate_for(&mut self, delivered: u32, safe: bool) {
        if self.congestion.phase != Phase::FastRecovery {
            return;
        }
        let (in_network, smss) = (self.pipe(), self.smss());
        if let Some(reduction) = self.repair.reduction() {
            self.congestion
                .reduce(reduction, delivered, in_network, smss, safe);
        }
    }

    // --- settings ---

    /// Adapts to changed parameters, and tracks outstanding data in the new way.
    pub(super) fn switch_recovery(&mut self, now: Time, config: &Config) {
        let other = self.congestion.set_algorithm(config, self.tx.iss);
        let each_mark = self.congestion.needs(Needs::EACH_MARK);
        self.notification.choose(each_mark, config);
        let kept = self.keeps_times();
        let pending = self.repair.switches & Switches::PROBE_TAIL;
        self.repair.switches = Switches::of(config) | pending;
        let (una, max) = (self.tx.una, self.tx.max);
        match (kept, self.keeps_times()) {
            (false, true) => {
                let moment = self.clock.moment(now);
                let repair = &mut self.repair;
                repair
                    .flight
                    .start(una, max, self.scoreboard.as_deref(), moment);
                if self.tx.next != max {
                    // A timeout has reset SND.NXT: all outstanding data is to be sent again.
                    repair.flight.lose_all(una);
                }
                self.tx.next = max;
            }
            (true, false) => {
                self.repair.stop_times();
                self.timers.loss = Time::NEVER;
                if self.congestion.phase == Phase::Timeout {
                    self.tx.next = una;
                }
                if let Some(scoreboard) = &mut self.scoreboard {
                    scoreboard.start_recovery(una);
                }
            }
            _ => {}
        }
        self.restart_feedback(now, config, other, kept != self.keeps_times());
    }

    // --- timeouts ---

    /// RACK_mark_losses_on_RTO (RFC 8985 6.3).
    pub(super) fn lose_at_timeout(&mut self, cx: &Context<'_>) {
        let (una, smss) = (self.tx.una, self.smss());
        if let Some(scoreboard) = &mut self.scoreboard
            && scoreboard.starts_at(una)
        {
            // The peer dropped what it had reported (RFC 2018 8).
            scoreboard.clear();
            self.repair.flight.forget_reports(una);
        }
        let repair = &mut self.repair;
        let lost_after = repair
            .rack
            .lost_after(repair.flight.reported_segments(), self.rtt.srtt());
        let now = self.clock.moment(cx.now);
        let (feedback, congestion) = (&mut self.feedback, &mut self.congestion);
        repair.flight.time_out(una, now, lost_after, |sent, len| {
            if let Some(feedback) = feedback {
                feedback.lost(congestion, now, sent, len, smss);
            }
        });
        repair.tail = None;
        self.tx.next = self.tx.max;
        self.timers.loss = Time::NEVER;
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
    }

    /// Returns the first lost data that is to be sent again.
    pub(super) fn lost_run(&mut self) -> Option<Run> {
        let (start, end) = self.repair.flight.first_lost(self.tx.una)?;
        self.run_again(start, end)
    }

    /// Describes a loss at this time for congestion control.
    pub(super) fn loss(&self, now: Moment) -> Loss {
        let flight = match self.repair.is_on(Switches::RATE_REDUCTION) {
            // Data sent by limited transmit does not count (RFC 5681 3.2, step 2).
            true => self.flight().min(self.congestion.window()),
            false => self.flight(),
        };
        Loss {
            now,
            flight,
            smss: self.smss(),
        }
    }
}

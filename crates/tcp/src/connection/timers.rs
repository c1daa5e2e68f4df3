//! Timers of a connection: retransmission, window probes, delayed ACKs, giving up.

use super::{Connection, Context, Effects, End, Marks};
use crate::config::WindowProbe;
use crate::congestion::Loss;
use crate::info::{Timer, TimerKind};
use crate::types::{CloseReason, State};
use baton_wire::Payload;
use baton_wire::{Span, Time};
use serde::{Deserialize, Serialize};

/// Deadlines; `Time::NEVER` where a timer is off.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timers {
    /// Retransmission (RFC 6298).
    pub(super) retransmit: Time,
    /// Window probe (RFC 9293 3.8.6.1). Never on together with `retransmit`.
    pub(super) persist: Time,
    /// Detection of a loss, or probe of the tail (RFC 8985). Only on while `retransmit` is.
    pub(super) loss: Time,
    /// Time at which paced data may be sent.
    pub(super) pacing: Time,
    /// Delayed acknowledgment (RFC 9293 3.8.6.3).
    pub(super) delayed_ack: Time,
    /// Limit of FIN-WAIT-2 after the owner has closed.
    pub(super) fin_wait: Time,
    /// Keepalive (RFC 9293 3.8.4).
    pub(super) keepalive: Time,
    /// Retransmission timeouts since the last progress.
    pub(super) retries: u8,
    /// Window probes since probing began.
    pub(super) probes: u8,
    /// Window probes since the peer was last heard.
    pub(super) unanswered: u8,
    /// Keepalive probes since the peer was last heard.
    pub(super) keepalive_probes: u8,
}

/// Timers as remaining times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PortableTimers {
    retransmit: Option<Span>,
    persist: Option<Span>,
    loss: Option<Span>,
    pacing: Option<Span>,
    delayed_ack: Option<Span>,
    fin_wait: Option<Span>,
    keepalive: Option<Span>,
    retries: u8,
    probes: u8,
    unanswered: u8,
    keepalive_probes: u8,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            retransmit: Time::NEVER,
            persist: Time::NEVER,
            loss: Time::NEVER,
            pacing: Time::NEVER,
            delayed_ack: Time::NEVER,
            fin_wait: Time::NEVER,
            keepalive: Time::NEVER,
            retries: 0,
            probes: 0,
            unanswered: 0,
            keepalive_probes: 0,
        }
    }

    #[inline]
    fn next(&self) -> Time {
        self.retransmit
            .min(self.persist)
            .min(self.loss)
            .min(self.pacing)
            .min(self.delayed_ack)
            .min(self.fin_wait)
            .min(self.keepalive)
    }

    /// The timer that fires first, if one is on.
    pub(super) fn first(&self, now: Time) -> Option<Timer> {
        let timers = [
            (TimerKind::Retransmission, self.retransmit),
            (TimerKind::WindowProbe, self.persist),
            (TimerKind::Loss, self.loss),
            (TimerKind::Pacing, self.pacing),
            (TimerKind::DelayedAck, self.delayed_ack),
            (TimerKind::FinWait, self.fin_wait),
            (TimerKind::Keepalive, self.keepalive),
        ];
        let (kind, at) = timers.into_iter().min_by_key(|(_, at)| *at)?;
        let after = at.saturating_since(now);
        (at != Time::NEVER).then_some(Timer { kind, after })
    }

    pub(super) fn to_portable(&self, now: Time) -> PortableTimers {
        let remaining =
            |deadline: Time| (deadline != Time::NEVER).then(|| deadline.saturating_since(now));
        PortableTimers {
            retransmit: remaining(self.retransmit),
            persist: remaining(self.persist),
            loss: remaining(self.loss),
            pacing: remaining(self.pacing),
            delayed_ack: remaining(self.delayed_ack),
            fin_wait: remaining(self.fin_wait),
            keepalive: remaining(self.keepalive),
            retries: self.retries,
            probes: self.probes,
            unanswered: self.unanswered,
            keepalive_probes: self.keepalive_probes,
        }
    }

    pub(super) fn from_portable(now: Time, moved: &PortableTimers) -> Self {
        let deadline =
            |remaining: Option<Span>| remaining.map_or(Time::NEVER, |remaining| now + remaining);
        Self {
            retransmit: deadline(moved.retransmit),
            persist: deadline(moved.persist),
            loss: deadline(moved.loss),
            pacing: deadline(moved.pacing),
            delayed_ack: deadline(moved.delayed_ack),
            fin_wait: deadline(moved.fin_wait),
            keepalive: deadline(moved.keepalive),
            retries: moved.retries,
            probes: moved.probes,
            unanswered: moved.unanswered,
            keepalive_probes: moved.keepalive_probes,
        }
    }
}

impl<P: Payload> Connection<P> {
    /// When the connection's earliest timer is due.
    pub(crate) fn next_deadline(&self) -> Time {
        self.timers.next()
    }

    /// Runs the timers that are due.
    pub(crate) fn handle_timeouts(&mut self, cx: &mut Context<'_>) -> Effects {
        let mut effects = Effects::default();
        if self.timers.pacing <= cx.now {
            self.timers.pacing = Time::NEVER;
        }
        if self.timers.delayed_ack <= cx.now {
            self.timers.delayed_ack = Time::NEVER;
            // The ACK waited in vain for an answer with which it could travel (Linux leaves "pingpong" mode then).
            self.marks.remove(Marks::INTERACTIVE);
            self.rx.acks_owed = self.rx.acks_owed.max(1);
        }
        if self.timers.fin_wait <= cx.now {
            self.timers.fin_wait = Time::NEVER;
            effects.end = Some(End::Closed(CloseReason::TimedOut));
            return effects;
        }
        if self.timers.loss <= cx.now {
            // Before the retransmission timer, which a probe postpones (RFC 8985 7.3).
            self.loss_timeout(cx);
        }
        if self.timers.retransmit <= cx.now {
            self.retransmission_timeout(cx, &mut effects);
        }
        if self.timers.persist <= cx.now {
            self.persist_timeout(cx, &mut effects);
        }
        if self.timers.keepalive <= cx.now && effects.end.is_none() {
            self.keepalive_timeout(cx, &mut effects);
        }
        effects
    }

    /// RFC 6298 5.4 to 5.7, RFC 5681 3.1. Outstanding data is sent again from SND.UNA on (go-back-N).
    fn retransmission_timeout(&mut self, cx: &mut Context<'_>, effects: &mut Effects) {
        self.fast_open_failed(cx, true);
        if self.gives_up(cx) {
            effects.end = Some(End::Closed(self.timed_out()));
            return;
        }
        cx.stats.timeouts += 1;
        self.note_app_limit();
        let first = self.timers.retries == 0;
        self.timers.retries = self.timers.retries.saturating_add(1);
        let linear = match self.state {
            State::SynSent => cx.config.syn_linear_timeouts,
            _ => 0,
        };
        if u32::from(self.timers.retries) > linear {
            self.rtt.back_off();
        }
        self.timed = None;
        self.marks.remove(Marks::SEND_FIRST_AGAIN);
        self.timers.retransmit = self.due(cx, self.rtt.rto(cx.config));
        if self.is_opened_fast() {
            self.marks.insert(Marks::SYN_ACK_DUE | Marks::SYN_LOST);
            return;
        }
        if !self.is_synchronized() {
            self.tx.next = self.tx.una;
            self.marks.insert(Marks::SYN_LOST);
            return;
        }
        self.suspect_black_hole(cx);
        self.time_out(cx, first);
        if self.tx.window == 0 {
            // The peer took its window back: probe instead (RFC 9293 3.8.6.1).
            self.timers.retransmit = Time::NEVER;
            self.start_persist(cx);
            if cx.config.window_probe == WindowProbe::OldNumber {
                // The retransmission that would be due now is the first probe.
                self.persist_timeout(cx, effects);
            }
        }
    }

    /// Marks outstanding data as lost: all of it, or as much as RACK allows (RFC 8985 6.3).
    fn time_out(&mut self, cx: &Context<'_>, first: bool) {
        let now = self.clock.moment(cx.now);
        let (loss, max) = (self.loss(now), self.tx.max);
        let before = self.congestion.phase;
        self.start_episode();
        self.congestion.time_out(first, &loss, max);
        self.notification.reduced(max);
        self.start_forward_rto(first, before);
        if self.keeps_times() {
            self.lose_at_timeout(cx);
        } else {
            self.tell_lost_untimed(now);
            self.tx.next = self.tx.una;
            if let Some(scoreboard) = &mut self.scoreboard {
                scoreboard.clear();
            }
        }
        let left = match self.keeps_times() {
            true => self.in_network(),
            false => 0,
        };
        self.congestion.time_out_governed(&Loss {
            flight: left,
            ..loss
        });
    }

    /// Reports whether retransmission is to be given up (RFC 9293 3.8.3, R2): by the user timeout if there is one, otherwise by
    /// the number of retransmissions.
    fn gives_up(&self, cx: &Context<'_>) -> bool {
        let most = match self.state {
            State::SynSent => cx.config.syn_retries,
            State::SynReceived => cx.config.syn_ack_retries,
            _ if cx.config.user_timeout_ms.is_some() => u32::MAX,
            _ => cx.config.data_retries,
        };
        u32::from(self.timers.retries) >= most || self.user_timed_out(cx)
    }

    /// Reports whether probes have gone unanswered for long enough: by the user timeout, or without one by their number.
    pub(super) fn probed_in_vain(&self, cx: &Context<'_>) -> bool {
        match cx.config.user_timeout_ms {
            Some(_) => self.user_timed_out(cx),
            None => u32::from(self.timers.unanswered) >= cx.config.data_retries,
        }
    }

    /// RFC 9293 3.8.6.1: probing continues as long as the peer answers, at growing intervals.
    fn persist_timeout(&mut self, cx: &Context<'_>, effects: &mut Effects) {
        if self.marks.contains(Marks::HELD) {
            return self.held_timeout(cx, effects);
        }
        if self.marks.contains(Marks::SETTLING) && self.tx.window > 0 && self.flight() == 0 {
            // New data is not sent while the connection settles. When it resumes, the data is considered again.
            self.timers.persist = Time::NEVER;
            return;
        }
        if self.probed_in_vain(cx) {
            effects.end = Some(End::Closed(self.timed_out()));
            return;
        }
        self.timers.unanswered = self.timers.unanswered.saturating_add(1);
        self.timers.probes = self.timers.probes.saturating_add(1);
        self.timers.persist = self.due(cx, self.rtt.probe_interval(self.timers.probes, cx.config));
        self.marks.insert(Marks::PROBE);
    }

    /// Starts probing a window that lets nothing pass.
    pub(super) fn start_persist(&mut self, cx: &Context<'_>) {
        self.timers.probes = 0;
        self.timers.unanswered = 0;
        self.timers.loss = Time::NEVER;
        self.timers.persist = self.due(cx, self.rtt.probe_interval(0, cx.config));
    }

    /// Limits how long the owner's cork holds a partial segment back while nothing is outstanding (tcp(7) of Linux).
    pub(super) fn limit_cork(&mut self, cx: &Context<'_>) {
        if cx.config.cork_limit_ms > 0 {
            self.start_persist(cx);
            self.timers.persist = self.due(cx, Span::from_ms(cx.config.cork_limit_ms.into()));
        }
    }

    /// Starts the retransmission timer after something was sent that the peer has to acknowledge (RFC 6298 5.1).
    pub(super) fn start_retransmit(&mut self, cx: &Context<'_>) {
        self.timers.persist = Time::NEVER;
        if self.timers.retransmit == Time::NEVER {
            self.timers.retransmit = self.due(cx, self.rtt.rto(cx.config));
        }
    }

    /// Limits the time in FIN-WAIT-2 if the owner has closed the connection.
    pub(super) fn limit_fin_wait(&mut self, cx: &Context<'_>) {
        let forsaken = self.state == State::FinWait2 && self.marks.contains(Marks::RECEIVE_CLOSED);
        if forsaken && self.timers.fin_wait == Time::NEVER {
            self.timers.fin_wait = cx.now + Span::from_ms(cx.config.fin_wait_2_ms.into());
        }
    }

    pub(super) fn verify_timers(&self) -> Result<(), &'static str> {
        let retransmit = self.timers.retransmit != Time::NEVER;
        let persist = self.timers.persist != Time::NEVER;
        if retransmit && persist {
            return Err("the retransmission and persist timers exclude each other");
        }
        let answering = self.is_opened_fast();
        if self.flight() > 0 && !retransmit && !persist {
            return Err("a timer runs while something is outstanding");
        }
        if self.timers.loss != Time::NEVER && !retransmit {
            return Err("losses are looked for only while something is outstanding");
        }
        if self.flight() == 0 && retransmit && !answering {
            return Err("the retransmission timer runs only while something is outstanding");
        }
        if self.timers.delayed_ack != Time::NEVER && self.state == State::SynSent {
            return Err("nothing is acknowledged before the peer's SYN");
        }
        Ok(())
    }
}

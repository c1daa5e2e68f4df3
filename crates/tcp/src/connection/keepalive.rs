//! Keepalive probes to a silent peer (RFC 9293 3.8.4).

use super::{Connection, Context, Effects, End, Marks};
use crate::config::Config;
use crate::types::CloseReason;
use baton_wire::{Payload, Span, Time};

impl<P: Payload> Connection<P> {
    /// Sets the keepalive timer when the connection is established or its parameters changed.
    pub(super) fn start_keepalive(&mut self, now: Time, config: &Config) {
        self.timers.keepalive_probes = 0;
        self.timers.keepalive = match config.keepalive {
            Some(keepalive) if self.is_synchronized() => {
                let idle = Span::from_ms(keepalive.idle_ms.into());
                now + idle.saturating_sub(self.last_received_at.elapsed(now))
            }
            _ => Time::NEVER,
        };
    }

    /// Probes a peer that was silent too long, or gives it up after enough unanswered probes.
    pub(super) fn keepalive_timeout(&mut self, cx: &Context<'_>, effects: &mut Effects) {
        let Some(keepalive) = cx.config.keepalive else {
            self.timers.keepalive = Time::NEVER;
            return;
        };
        let idle = Span::from_ms(keepalive.idle_ms.into());
        if self.flight() > 0 || self.timers.persist != Time::NEVER {
            // Retransmissions and window probes serve as probes already.
            self.timers.keepalive = cx.now + idle;
            return;
        }
        let silence = self.last_received_at.elapsed(cx.now);
        if silence < idle {
            self.timers.keepalive_probes = 0;
            self.timers.keepalive = cx.now + (idle - silence);
            return;
        }
        let probes = self.timers.keepalive_probes;
        let given_up = match cx.config.user_timeout_ms {
            // As tcp(7) of Linux has it: the user timeout takes the place of the number of probes.
            Some(timeout_ms) => probes > 0 && silence >= Span::from_ms(timeout_ms.into()),
            None => u32::from(probes) >= keepalive.probes,
        };
        if given_up {
            effects.reset = Some(Box::new(self.reset_header()));
            effects.end = Some(End::Closed(self.timed_out()));
            return;
        }
        self.timers.keepalive_probes = probes.saturating_add(1);
        self.timers.keepalive = cx.now + Span::from_ms(keepalive.interval_ms.into());
        self.marks.insert(Marks::KEEPALIVE_PROBE);
    }

    /// Reason for which a connection ends whose peer does not answer: the last ICMP error, if there was one (RFC 9293
    /// 3.9.2.2).
    pub(super) fn timed_out(&self) -> CloseReason {
        self.soft_error
            .map_or(CloseReason::TimedOut, CloseReason::Unreachable)
    }
}

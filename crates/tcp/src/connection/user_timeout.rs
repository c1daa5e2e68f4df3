//! The user timeout: how long data may wait to be acknowledged or sent before the connection ends (RFC 9293 3.8.3, RFC 5482).

use super::{Connection, Context};
use crate::clock::Past;
use crate::config::Config;
use baton_wire::{Payload, Span, Time};

impl<P: Payload> Connection<P> {
    /// Starts the user timeout for the first byte that waits to be acknowledged or sent.
    pub(super) fn start_waiting(&mut self, now: Time) {
        self.waiting_since = Past::at(now);
    }

    /// The remaining time of the user timeout.
    fn user_timeout_left(&self, now: Time, config: &Config) -> Option<Span> {
        let timeout = Span::from_ms(config.user_timeout_ms?.into());
        Some(timeout.saturating_sub(self.waiting_since.elapsed(now)))
    }

    /// When a timer of `span` fires, which is no later than the user timeout.
    pub(super) fn due(&self, cx: &Context<'_>, span: Span) -> Time {
        let left = self.user_timeout_left(cx.now, cx.config);
        cx.now + left.map_or(span, |left| left.min(span))
    }

    /// Reports whether the user timeout has passed.
    pub(super) fn user_timed_out(&self, cx: &Context<'_>) -> bool {
        self.user_timeout_left(cx.now, cx.config) == Some(Span::ZERO)
    }

    /// Applies a change of the parameter from `old` to `new` to the timers that wait for the peer.
    pub(super) fn restart_user_timeout(&mut self, now: Time, old: &Config, new: &Config) {
        if old.user_timeout_ms == new.user_timeout_ms {
            return;
        }
        let Some(left) = self.user_timeout_left(now, new) else {
            return;
        };
        for timer in [&mut self.timers.retransmit, &mut self.timers.persist] {
            if *timer != Time::NEVER {
                *timer = (*timer).min(now + left);
            }
        }
    }
}

//! A token bucket for messages that other hosts can trigger.

use baton_wire::{Span, Time};

/// Allows `per_second` messages, and a tenth of a second's worth (at least ten) in a burst, as RFC 4443 2.4(f) suggests.
#[derive(Clone, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    tokens: u32,
    /// Time up to which earned tokens are in the bucket.
    filled_at: Time,
}

impl RateLimit {
    /// Creates a full bucket.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second,
            tokens: Self::most(per_second),
            filled_at: Time::ZERO,
        }
    }

    fn most(per_second: u32) -> u32 {
        (per_second / 10).max(10).min(per_second)
    }

    /// Reports whether a message may be sent now, and if so takes a token.
    pub(crate) fn allow(&mut self, now: Time) -> bool {
        let most = Self::most(self.per_second);
        if self.per_second > 0 {
            let interval = Span::from_secs(1) / u64::from(self.per_second);
            let earned = now.saturating_since(self.filled_at).as_ps() / interval.as_ps();
            if earned >= u64::from(most) {
                (self.tokens, self.filled_at) = (most, now);
            } else {
                self.tokens = (self.tokens + earned as u32).min(most);
                self.filled_at += interval * earned;
            }
        }
        let allowed = self.tokens > 0;
        self.tokens -= u32::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut limit = RateLimit::new(100);
        let allowed = |limit: &mut RateLimit, at_ms| {
            (0..100)
                .filter(|_| limit.allow(Time::ZERO + Span::from_ms(at_ms)))
                .count()
        };
        assert_eq!(allowed(&mut limit, 0), 10);
        assert_eq!(allowed(&mut limit, 9), 0);
        assert_eq!(allowed(&mut limit, 10), 1);
        assert_eq!(allowed(&mut limit, 35), 2);
        assert_eq!(allowed(&mut limit, 40), 1);
        assert_eq!(allowed(&mut limit, 1_000_000), 10);
    }

    #[test]
    fn a_rate_of_zero_admits_nothing() {
        assert!(!RateLimit::new(0).allow(Time::ZERO + Span::from_secs(9)));
        let mut one = RateLimit::new(1);
        assert!(one.allow(Time::ZERO) && !one.allow(Time::ZERO));
    }
}

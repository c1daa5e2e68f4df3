//! When to look for an adapter again.

use crate::config::DriverConfig;
use baton_wire::{Span, Time};

/// Pauses that double.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    first: Span,
    longest: Span,
    pause: Span,
    at: Time,
}

impl Retry {
    pub(crate) fn new(config: &DriverConfig) -> Self {
        let first = Span::from_ms(config.first_retry_ms.max(1).into());
        Self {
            first,
            longest: Span::from_ms(config.longest_retry_ms.into()).max(first),
            pause: first,
            at: Time::ZERO,
        }
    }

    /// Starts the pauses again after the adapter was lost at `now`.
    pub(crate) fn begin(&mut self, now: Time) {
        self.pause = self.first;
        self.at = now + self.pause;
    }

    /// Doubles the pause after an attempt has failed at `now`.
    pub(crate) fn failed(&mut self, now: Time) {
        self.pause = (self.pause * 2).min(self.longest);
        self.at = now + self.pause;
    }

    /// Returns the time of the next attempt.
    pub(crate) fn at(&self) -> Time {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let config = DriverConfig {
            first_retry_ms: 10,
            longest_retry_ms: 35,
            ..DriverConfig::default()
        };
        let mut retry = Retry::new(&config);
        let mut now = Time::ZERO + Span::from_secs(1);
        retry.begin(now);
        for pause_ms in [10, 20, 35, 35] {
            assert_eq!(retry.at(), now + Span::from_ms(pause_ms));
            now = retry.at();
            retry.failed(now);
        }
        retry.begin(now);
        assert_eq!(retry.at(), now + Span::from_ms(10));
    }
}

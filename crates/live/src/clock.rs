//! The clock of the engine.

use baton_wire::{Span, Time};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time since the engine was started.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// CLOCK_MONOTONIC, which all processes share, at the start.
    monotonic: Duration,
    /// Wall-clock time at the start.
    epoch: Duration,
}

impl Clock {
    /// Starts the clock at [`Time::ZERO`].
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            monotonic: clock_gettime(ClockId::Monotonic)
                .try_into()
                .unwrap_or_default(),
            epoch: since.unwrap_or_default(),
        }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Time {
        Time::ZERO + Span::from(self.start.elapsed())
    }

    /// Returns CLOCK_MONOTONIC at [`Time::ZERO`].
    pub fn monotonic(&self) -> Duration {
        self.monotonic
    }

    /// Returns the wall-clock time of [`Time::ZERO`], since 1970.
    pub fn epoch(&self) -> Duration {
        self.epoch
    }
}

//! The engine's time.

use baton_wire::{Span, Time};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time since the engine was started.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// Wall-clock time of the start.
    epoch: Duration,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            epoch: since.unwrap_or_default(),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        Time::ZERO + Span::from(self.start.elapsed())
    }

    /// Wall-clock time of [`Time::ZERO`] since 1970.
    pub fn epoch(&self) -> Duration {
        self.epoch
    }
}

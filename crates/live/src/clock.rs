//! The engine's time.

use baton_wire::Time;
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
        let ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time::from_ps(ns.saturating_mul(1000))
    }

    /// Wall-clock time of [`Time::ZERO`] since 1970.
    pub fn epoch(&self) -> Duration {
        self.epoch
    }
}

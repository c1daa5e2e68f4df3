//! The time limit of a call.

use std::time::{Duration, Instant};

/// A time limit, which begins when the remaining time is first asked for: most calls do not wait, and then need not read the clock.
pub struct Limit {
    timeout: Option<Duration>,
    end: Option<Instant>,
}

impl Limit {
    /// Creates a limit that has not begun; `None` is no limit.
    pub fn new(timeout: Option<Duration>) -> Self {
        Self { timeout, end: None }
    }

    /// Returns how much time is left; `None` if there is no limit.
    pub fn left(&mut self) -> Option<Duration> {
        let timeout = self.timeout?;
        if timeout.is_zero() {
            return Some(timeout);
        }
        let now = Instant::now();
        if self.end.is_none() {
            self.end = now.checked_add(timeout);
        }
        self.end.map(|end| end.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_begins_when_it_is_asked_for() {
        let second = Duration::from_secs(1);
        let mut limit = Limit::new(Some(second));
        assert_eq!(limit.left(), Some(second));
        assert!(limit.left() <= Some(second));
        assert_eq!(
            Limit::new(Some(Duration::ZERO)).left(),
            Some(Duration::ZERO)
        );
        assert_eq!(Limit::new(None).left(), None);
        assert_eq!(
            Limit::new(Some(Duration::MAX)).left(),
            None,
            "longer than the clock runs"
        );
    }
}

//! How long to look again and again before one sleeps.
//!
//! To sleep and to be woken costs several microseconds of both sides, and tens of them where a processor has to come out of its idle
//! state. To spin costs the processor, and where the other side needs the same processor it costs everything.
//! So the time that is spent on spinning grows while it pays off and shrinks while it does not; when it has shrunk to
//! nothing it is tried again now and then, ever more rarely while it fails.

use std::time::Duration;

/// The time that an attempt begins with.
const LEAST: Duration = Duration::from_micros(5);
/// Sleeps between two attempts, at most.
const MOST_SKIPPED: u32 = 1024;

/// The rule, without a clock: the caller spins for [`Spin::begin`] and says how that ended.
///
/// ```
/// use baton_iolib::Spin;
/// use std::time::Duration;
///
/// let mut spin = Spin::new(Duration::from_micros(50));
/// let first = spin.begin();
/// spin.paid_off();
/// assert!(spin.begin() > first);
/// ```
#[derive(Clone, Debug)]
pub struct Spin {
    budget: Duration,
    most: Duration,
    /// Sleeps until the next attempt, while the budget is nothing.
    skip: u32,
    /// Sleeps between the last two attempts.
    skipped: u32,
}

impl Spin {
    /// Spins at most for `most` at a time; never when that is zero.
    pub fn new(most: Duration) -> Self {
        Self {
            budget: Duration::ZERO,
            most,
            skip: 0,
            skipped: 0,
        }
    }

    /// How long to spin now; zero is not at all.
    pub fn begin(&mut self) -> Duration {
        if self.budget.is_zero() && self.skip > 0 {
            self.skip -= 1;
            return Duration::ZERO;
        }
        self.budget.max(LEAST).min(self.most)
    }

    /// Something came before the time was over.
    pub fn paid_off(&mut self) {
        self.budget = (self.budget.max(LEAST) * 2).min(self.most);
        self.skipped = 0;
    }

    /// The time was over before anything came.
    pub fn was_in_vain(&mut self) {
        self.budget /= 2;
        if self.budget < LEAST {
            self.budget = Duration::ZERO;
            self.skipped = (self.skipped * 2).clamp(1, MOST_SKIPPED);
            self.skip = self.skipped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_micros(50);

    #[test]
    fn it_grows_to_the_limit_and_shrinks_to_nothing() {
        let mut spin = Spin::new(MOST);
        for _ in 0..5 {
            assert!(spin.begin() >= LEAST);
            spin.paid_off();
        }
        assert_eq!(spin.begin(), MOST);
        for _ in 0..4 {
            spin.was_in_vain();
        }
        assert_eq!(spin.begin(), Duration::ZERO);
    }

    #[test]
    fn attempts_that_fail_become_rare() {
        let mut spin = Spin::new(MOST);
        let mut attempts = 0;
        for _ in 0..100_000 {
            if !spin.begin().is_zero() {
                attempts += 1;
                spin.was_in_vain();
            }
        }
        assert!((50..120).contains(&attempts), "{attempts} attempts");
        while spin.begin().is_zero() {}
        spin.paid_off();
        assert!(!spin.begin().is_zero(), "one success is enough to go on");
    }

    #[test]
    fn it_can_be_switched_off() {
        let mut spin = Spin::new(Duration::ZERO);
        spin.paid_off();
        assert_eq!(spin.begin(), Duration::ZERO);
    }
}

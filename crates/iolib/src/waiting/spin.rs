//! How long to spin before sleeping.
//!
//! Sleeping and waking up cost both sides several microseconds, and tens of them if a processor has to leave its idle state. Spinning costs
//! processor time, and ruins performance if the other side needs the same processor. So the time spent on spinning grows while it pays off
//! and shrinks while it does not. Once it has shrunk to zero, spinning is tried again from time to time, and more and more rarely while it
//! fails. Such an attempt takes the maximum time: two sides that both sleep answer each other so late that shorter attempts would never
//! discover that both could spin.

use std::time::{Duration, Instant};

/// Minimum time that is worth spinning.
const LEAST: Duration = Duration::from_micros(5);
/// Maximum number of sleeps between two attempts.
const MOST_SKIPPED: u32 = 1024;

/// The algorithm, without a clock. A caller that has found no work asks [`Spin::goes_on`] whether to look again; a caller that has found
/// some calls [`Spin::came`].
///
/// ```
/// use baton_iolib::Spin;
/// use std::time::{Duration, Instant};
///
/// let mut spin = Spin::new(Duration::from_micros(50));
/// let mut looks = 0;
/// while spin.goes_on(Instant::now(), None) {
///     looks += 1;
///     if looks == 2 {
///         spin.came();
///         break;
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Spin {
    budget: Duration,
    most: Duration,
    /// End of the current attempt.
    until: Option<Instant>,
    /// Number of sleeps until the next attempt, while the budget is zero.
    skip: u32,
    /// Number of sleeps between the last two attempts.
    skipped: u32,
    stats: SpinStats,
}

/// Results of spinning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinStats {
    /// Number of attempts during which work arrived.
    pub paid_off: u64,
    /// Number of attempts during which no work arrived.
    pub in_vain: u64,
}

impl Spin {
    /// Creates a `Spin` whose attempts take at most `most`; with zero, it never spins.
    pub fn new(most: Duration) -> Self {
        Self {
            budget: Duration::ZERO,
            most,
            until: None,
            skip: 0,
            skipped: 0,
            stats: SpinStats::default(),
        }
    }

    /// Returns whether to look again immediately, at `now`. If not, it is time to sleep; at `due` there is other work to do.
    pub fn goes_on(&mut self, now: Instant, due: Option<Instant>) -> bool {
        let until = match self.until {
            Some(until) => until,
            None => {
                let budget = self.begin();
                if budget.is_zero() {
                    return false;
                }
                *self.until.insert(now + budget)
            }
        };
        let goes_on = due.map_or(until, |due| due.min(until)) > now;
        if !goes_on {
            self.was_in_vain();
        }
        goes_on
    }

    /// Notes that there was work. If an attempt is in progress, it has paid off.
    pub fn came(&mut self) {
        if self.until.take().is_some() {
            self.stats.paid_off += 1;
            self.budget = (self.attempt() * 2).min(self.most);
            self.skipped = 0;
        }
    }

    /// Returns the results so far.
    pub fn stats(&self) -> &SpinStats {
        &self.stats
    }

    /// Returns how long the next attempt may take; zero if there is none.
    fn begin(&mut self) -> Duration {
        if self.budget.is_zero() && self.skip > 0 {
            self.skip -= 1;
            return Duration::ZERO;
        }
        self.attempt()
    }

    /// Returns how long an attempt takes.
    fn attempt(&self) -> Duration {
        if self.budget.is_zero() {
            self.most
        } else {
            self.budget
        }
    }

    /// Notes that an attempt ended before work arrived.
    fn was_in_vain(&mut self) {
        self.until = None;
        self.stats.in_vain += 1;
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

    /// Returns how long it spins if no look finds work and looks are a microsecond apart.
    fn spins_in_vain(spin: &mut Spin, now: &mut Instant) -> Duration {
        let begin = *now;
        while spin.goes_on(*now, None) {
            *now += Duration::from_micros(1);
        }
        *now - begin
    }

    /// Lets work arrive after a look, and returns whether it looked at all.
    fn pays_off(spin: &mut Spin, now: Instant) -> bool {
        let looks = spin.goes_on(now, None);
        spin.came();
        looks
    }

    #[test]
    fn the_spin_grows_to_the_limit_and_shrinks_to_zero() {
        let (mut spin, mut now) = (Spin::new(MOST), Instant::now());
        for _ in 0..5 {
            assert!(pays_off(&mut spin, now));
        }
        assert_eq!(spins_in_vain(&mut spin, &mut now), MOST);
        for _ in 0..3 {
            assert!(spins_in_vain(&mut spin, &mut now) >= LEAST);
        }
        assert_eq!(spins_in_vain(&mut spin, &mut now), Duration::ZERO);
        let stats = SpinStats {
            paid_off: 5,
            in_vain: 4,
        };
        assert_eq!(spin.stats(), &stats);
    }

    #[test]
    fn spins_in_vain_become_rare() {
        let (mut spin, mut now) = (Spin::new(MOST), Instant::now());
        let mut attempts = 0;
        for sleeps in 1..=100_000 {
            if !spins_in_vain(&mut spin, &mut now).is_zero() {
                attempts += 1;
            }
            assert!(sleeps > 1000 || attempts < 30, "{attempts} attempts");
        }
        assert!((50..120).contains(&attempts), "{attempts} attempts");
        while !pays_off(&mut spin, now) {}
        assert_eq!(
            spins_in_vain(&mut spin, &mut now),
            MOST,
            "one success is enough to go on"
        );
    }

    #[test]
    fn a_spin_ends_when_a_timer_is_due() {
        let (mut spin, now) = (Spin::new(MOST), Instant::now());
        assert!(pays_off(&mut spin, now));
        let due = Some(now + Duration::from_micros(2));
        assert!(spin.goes_on(now + Duration::from_micros(1), due));
        assert!(!spin.goes_on(now + Duration::from_micros(2), due));
    }

    #[test]
    fn arrivals_without_a_spin_do_not_count() {
        let mut spin = Spin::new(MOST);
        spin.came();
        assert_eq!(spin.stats(), &SpinStats::default());
    }

    #[test]
    fn spinning_can_be_switched_off() {
        let (mut spin, now) = (Spin::new(Duration::ZERO), Instant::now());
        assert!(!pays_off(&mut spin, now));
        assert!(!spin.goes_on(now, None));
    }
}

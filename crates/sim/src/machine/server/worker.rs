//! A process that sleeps until there is work, and then works, one piece after the other.

use crate::config::WakeUpConfig;
use baton_wire::{Span, Time};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Schedule of a process. The caller reports when there is work.
///
/// The process sleeps. When work arrives, it is awake after a delay and does a piece of work; if there is more work by then, the next
/// piece.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    state: State,
    wake_up: Span,
    /// Maximum deviation from `wake_up`, in either direction, picoseconds.
    jitter_ps: u64,
    generator: Pcg64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    Waking(Time),
    Working(Time),
}

impl Worker {
    /// Creates a sleeping process.
    pub(super) fn new(config: WakeUpConfig, seed: u64) -> Self {
        let wake_up = Span::from_ns(config.ns.into());
        Self {
            state: State::Asleep,
            wake_up,
            jitter_ps: wake_up.as_ps() / 100 * u64::from(config.jitter_percent),
            generator: Pcg64::seed_from_u64(seed),
        }
    }

    /// Returns when the current piece of work ends. If there is none, returns when the next piece begins, because the process is awake or
    /// one of its timers wakes it up. `timer` returns when the first timer is due, and is only called if that matters.
    #[inline]
    pub(super) fn poll_timeout(
        &self,
        now: Time,
        timer: impl FnOnce() -> Option<Time>,
    ) -> Option<Time> {
        match self.state {
            State::Asleep => timer(),
            State::Waking(at) if at <= now => Some(at),
            State::Waking(at) => Some(timer().map_or(at, |timer| timer.min(at))),
            State::Working(until) => Some(until),
        }
    }

    /// Wakes the process up because there is work.
    pub(super) fn wake(&mut self, now: Time) {
        if self.state == State::Asleep {
            let drawn = match 2 * self.jitter_ps {
                0 => 0,
                most => self.generator.next_u64() % (most + 1),
            };
            let span = Span::from_ps(self.wake_up.as_ps() - self.jitter_ps + drawn);
            self.state = State::Waking(now + span);
        }
    }

    /// Returns whether the process sleeps until an event wakes it up.
    pub(super) fn is_asleep(&self) -> bool {
        self.state == State::Asleep
    }

    /// Returns whether an event, not a timer, has woken the process up.
    pub(super) fn is_waking(&self) -> bool {
        matches!(self.state, State::Waking(_))
    }

    /// Reports whether a piece of work ends at `now`, and ends it.
    pub(super) fn ends(&mut self, now: Time) -> bool {
        let ends = self.state == State::Working(now);
        if ends {
            self.state = State::Asleep;
        }
        ends
    }

    /// Puts the process to sleep because there was no work after all.
    pub(super) fn rest(&mut self) {
        debug_assert!(!matches!(self.state, State::Working(_)));
        self.state = State::Asleep;
    }

    /// Starts a piece of work that ends at `end`.
    pub(super) fn work(&mut self, end: Time) {
        debug_assert!(!matches!(self.state, State::Working(_)));
        self.state = State::Working(end);
    }

    /// Continues after a piece of work without sleeping, because there is more work.
    pub(super) fn go_on(&mut self, now: Time) {
        if self.state == State::Asleep {
            self.state = State::Waking(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn worker(wake_up_us: u32, jitter_percent: u32, seed: u64) -> Worker {
        let ns = wake_up_us * 1_000;
        Worker::new(WakeUpConfig { ns, jitter_percent }, seed)
    }

    fn begins(worker: &Worker, now: Time, timer: Option<Time>) -> bool {
        (worker.poll_timeout(now, || timer)).is_some_and(|due| due <= now)
    }

    #[test]
    fn a_worker_wakes_up_works_and_sleeps() {
        let mut worker = worker(10, 0, 1);
        assert_eq!(worker.poll_timeout(at(4), || None), None);
        worker.wake(at(5));
        worker.wake(at(6));
        assert_eq!(
            worker.poll_timeout(at(6), || None),
            Some(at(15)),
            "the first counts"
        );
        assert!(!begins(&worker, at(14), None) && begins(&worker, at(15), None));
        worker.work(at(18));
        worker.wake(at(16));
        assert!(!begins(&worker, at(17), Some(at(17))), "it is busy");
        assert!(!worker.ends(at(17)) && worker.ends(at(18)));
        assert_eq!(worker.poll_timeout(at(18), || None), None);
        worker.go_on(at(18));
        assert!(begins(&worker, at(18), None));
    }

    #[test]
    fn a_timer_wakes_a_worker_at_once() {
        let mut worker = worker(10, 0, 1);
        assert_eq!(worker.poll_timeout(at(6), || Some(at(7))), Some(at(7)));
        assert!(begins(&worker, at(7), Some(at(7))));
        worker.wake(at(0));
        assert!(begins(&worker, at(7), Some(at(7))) && !begins(&worker, at(7), Some(at(8))));
    }

    #[test]
    fn jitter_stays_in_its_bounds_and_depends_on_the_seed() {
        let delays = |seed| {
            let delay = |n: u64| {
                let mut worker = worker(100, 20, seed + n);
                worker.wake(Time::ZERO);
                worker.poll_timeout(Time::ZERO, || None).unwrap()
            };
            (0..50).map(delay).collect::<Vec<_>>()
        };
        assert!(delays(1).iter().all(|d| (at(80)..=at(120)).contains(d)));
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(1_000));
    }
}

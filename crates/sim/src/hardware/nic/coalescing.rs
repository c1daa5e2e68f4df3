//! Interrupt coalescing: when a NIC interrupts.

use super::CoalescingRule;
use baton_wire::{Span, Time};

/// Frames of one direction that the NIC has not reported to the host.
#[derive(Clone, Debug)]
pub(crate) struct Coalescing {
    rule: CoalescingRule,
    frames: u32,
    since: Time,
    /// Time that [`next_due`](Self::next_due) last returned.
    reported: Time,
}

impl Coalescing {
    pub(crate) fn new(rule: CoalescingRule) -> Self {
        Self {
            rule,
            frames: 0,
            since: Time::ZERO,
            reported: Time::ZERO,
        }
    }

    /// Adds a frame. `others` descriptors of the ring do not belong to unreported frames. Returns whether the NIC interrupts.
    pub(crate) fn add(&mut self, now: Time, others: u32) -> bool {
        if self.frames == 0 {
            self.since = now;
        }
        self.frames += 1;
        self.is_enough(others)
    }

    fn is_enough(&self, others: u32) -> bool {
        let of_count = self.rule.frames.is_some_and(|frames| self.frames >= frames);
        let of_ring = self
            .rule
            .other_descriptors
            .is_some_and(|least| others <= least);
        of_count || of_ring
    }

    /// Returns when the NIC interrupts; `None` if only more frames can make it interrupt.
    pub(crate) fn due(&self) -> Option<Time> {
        let time = self.rule.time_ns.filter(|_| self.frames > 0)?;
        Some(self.since + Span::from_ns(time.into()))
    }

    /// Returns when the NIC interrupts, but each time only once.
    pub(crate) fn next_due(&mut self) -> Option<Time> {
        let due = self.due().filter(|due| *due != self.reported)?;
        self.reported = due;
        Some(due)
    }

    /// Returns whether the time has passed and the NIC interrupts.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Restarts after the driver has looked at all but `left` frames. Returns whether the NIC interrupts again immediately.
    pub(crate) fn restart(&mut self, now: Time, left: u32, others: u32) -> bool {
        (self.frames, self.since) = (left, now);
        left > 0 && self.is_enough(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn the_first_limit_that_is_reached_causes_the_interrupt() {
        let mut coalescing = Coalescing::new(CoalescingRule {
            time_ns: Some(100_000),
            frames: Some(3),
            other_descriptors: Some(2),
        });
        assert_eq!(coalescing.due(), None);
        assert!(!coalescing.add(at(10), 9));
        assert!(!coalescing.add(at(50), 9));
        assert_eq!(coalescing.due(), Some(at(110)), "counted from the first");
        assert!(!coalescing.is_due(at(109)));
        assert!(coalescing.is_due(at(110)));
        assert!(coalescing.add(at(60), 9), "the third");
        assert!(!coalescing.restart(at(70), 1, 9));
        assert_eq!(coalescing.due(), Some(at(170)), "the time restarts");
        assert!(coalescing.add(at(80), 2), "few descriptors are left");
    }

    #[test]
    fn without_limits_only_exhausted_descriptors_cause_an_interrupt() {
        let mut coalescing = Coalescing::new(CoalescingRule {
            time_ns: None,
            frames: None,
            other_descriptors: Some(1),
        });
        assert!((2..100).all(|free| !coalescing.add(at(free), 102 - free as u32)));
        assert_eq!(coalescing.due(), None);
        assert!(coalescing.add(at(100), 1));
    }
}

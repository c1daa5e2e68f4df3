//! When an adapter with hardware interrupts the host: coalescing of its responses.

use crate::hardware::nic::{Coalescing, CoalescingRule};
use baton_wire::Time;

/// State of the interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Responses may cause an interrupt.
    Armed,
    /// The interrupt is on its way.
    Coming,
    /// The host has been interrupted and is awake: it looks for responses by itself.
    Handled,
}

/// The interrupts of an adapter.
#[derive(Debug)]
pub(super) struct Interrupts {
    coalescing: Coalescing,
    state: State,
}

impl Interrupts {
    pub(super) fn new(rule: CoalescingRule) -> Self {
        Self {
            coalescing: Coalescing::new(rule),
            state: State::Armed,
        }
    }

    /// Handles the arrival of responses in host memory. Returns whether the adapter interrupts.
    pub(super) fn handle_responses(&mut self, now: Time, count: u32) -> bool {
        let mut is_enough = false;
        for _ in 0..count {
            is_enough |= self.coalescing.add(now, u32::MAX);
        }
        self.interrupts(is_enough)
    }

    /// Returns when the adapter interrupts if nothing else arrives.
    pub(super) fn due(&self) -> Time {
        let due = self.coalescing.due().filter(|_| self.state == State::Armed);
        due.unwrap_or(Time::NEVER)
    }

    /// Returns whether the adapter interrupts because responses have waited long enough.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        self.interrupts(self.due() <= now)
    }

    fn interrupts(&mut self, is_enough: bool) -> bool {
        let interrupts = is_enough && self.state == State::Armed;
        if interrupts {
            self.state = State::Coming;
        }
        interrupts
    }

    /// Handles the arrival of the interrupt.
    pub(super) fn handle_interrupt(&mut self) {
        self.state = State::Handled;
    }

    /// Handles that the host sleeps: it has taken all responses.
    pub(super) fn handle_sleep(&mut self, now: Time) {
        if self.state == State::Handled {
            self.coalescing.restart(now, 0, u32::MAX);
            self.state = State::Armed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Span;

    #[test]
    fn responses_are_announced_together_until_the_host_sleeps() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut interrupts = Interrupts::new(CoalescingRule {
            time_ns: Some(50_000),
            frames: Some(3),
            other_descriptors: None,
        });
        assert_eq!(interrupts.due(), Time::NEVER);
        assert!(!interrupts.handle_responses(at(10), 2));
        assert_eq!(interrupts.due(), at(60));
        assert!(interrupts.handle_responses(at(20), 1), "the third");
        assert_eq!(interrupts.due(), Time::NEVER, "it is on its way");
        interrupts.handle_interrupt();
        assert!(!interrupts.handle_responses(at(30), 9), "the host is awake");
        interrupts.handle_sleep(at(40));
        assert!(!interrupts.handle_responses(at(50), 1));
        assert!(!interrupts.handle_timeout(at(99)));
        assert!(interrupts.handle_timeout(at(100)));
        interrupts.handle_sleep(at(101));
        assert!(!interrupts.handle_responses(at(102), 3), "still on its way");
    }
}

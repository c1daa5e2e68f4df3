//! Selection by packet rate.

use super::{Decision, NextLook, Selection, View};

/// Scales rates to enqueues per second; 64 bits suffice for 2^32 enqueues in a microsecond.
const PER_SECOND: u64 = 1_000_000;
/// Divisor that gives the weight of a new rate in the mean.
const MEAN_OVER: u64 = 256;

/// Attempts to hand off connections that have sent faster than others, at any send request after the first: for NICs that hold few
/// connections but serve them fast (handoff-policies 3.3). Rates are averages over a connection's whole life, in enqueues to the send
/// buffer: about the same number of packets belongs to each.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    percent: u32,
    /// Mean rate at all decisions so far, in enqueues per second times [`MEAN_OVER`].
    mean: u64,
}

impl Rate {
    /// Creates a policy that selects connections from `percent` per cent of the mean rate on.
    pub fn new(percent: u32) -> Self {
        Self { percent, mean: 0 }
    }

    /// Adds a rate to the mean, and returns the mean.
    fn learn(&mut self, rate: u64) -> u64 {
        self.mean = match self.mean {
            0 => rate.saturating_mul(MEAN_OVER),
            mean => (mean - mean / MEAN_OVER).saturating_add(rate),
        };
        self.mean / MEAN_OVER
    }
}

impl Selection for Rate {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_send(&mut self, view: &View) -> Decision {
        if view.requests < 2 {
            return Decision::Stay;
        }
        let age_us = view.age.as_us().max(1);
        let rate = u64::from(view.enqueues_before) * PER_SECOND / age_us;
        let mean = self.learn(rate);
        let is_fast = u128::from(rate) * 100 >= u128::from(mean) * u128::from(self.percent);
        Decision::hand_off_if(is_fast && !view.nic_is_full())
    }

    fn next_look(&self, view: &View) -> NextLook {
        NextLook::at_enqueues(view.enqueues.saturating_add(1), view)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;
    use baton_wire::Span;

    fn after(ms: u64, enqueues: u32) -> View {
        View {
            age: Span::from_ms(ms),
            requests: 2,
            ..view(80, enqueues, enqueues + 1)
        }
    }

    #[test]
    fn faster_connections_are_handed_off() {
        let mut policy = Rate::new(100);
        let slow = after(1_000, 10);
        let fast = after(100, 10);
        for _ in 0..100 {
            policy.on_send(&slow);
            assert_eq!(policy.on_send(&fast), Decision::HandOff);
        }
        assert_eq!(policy.on_send(&slow), Decision::Stay);
        let full = View {
            nic_connections: fast.nic_soft_limit,
            ..fast
        };
        assert_eq!(policy.on_send(&full), Decision::Stay);
        let first = View {
            requests: 1,
            ..fast
        };
        assert_eq!(policy.on_send(&first), Decision::Stay);
    }

    #[test]
    fn a_connection_that_sends_at_once_has_a_rate() {
        let mut policy = Rate::new(100);
        assert_eq!(policy.on_send(&after(0, u32::MAX - 1)), Decision::HandOff);
    }
}

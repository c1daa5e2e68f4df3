//! Selection by expected benefit.

use super::{Decision, Life, NextLook, Selection, View};
use std::fmt::Debug;

/// Divisor of the price increase at each decision while the NIC is full.
const DEARER: u64 = 32;
/// Divisor of the price reduction at each decision while the NIC is not full.
const CHEAPER: u64 = 512;
/// Units of the price per enqueue.
const FINE: u64 = 1 << 10;
/// Maximum price, so that the price does not take forever to fall.
const MOST: u64 = FINE << 20;

/// Predicts how much a connection is going to send.
pub trait Remaining: Debug + Send {
    /// Returns approximately how many more enqueues to the send buffer will follow.
    fn remaining(&self, view: &View) -> u64;

    /// Learns from a connection that has ended.
    fn learn(&mut self, life: &Life) {
        let _ = life;
    }
}

/// Takes the number of enqueues from the log that is being replayed; zero if it is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Foreseen;

impl Remaining for Foreseen {
    fn remaining(&self, view: &View) -> u64 {
        let all = view.foreseen_enqueues.unwrap_or(0);
        all.saturating_sub(view.enqueues).into()
    }
}

/// The benefit of a handoff is the saving for each future packet, minus the cost of the handoff (handoff-policies 3.3), so it pays off from
/// a certain number of future enqueues on. If places on the NIC are scarce, the connections with the greatest benefit get them: a place has
/// a price, which rises while the NIC is full and falls while it is not, but never below the cost of a handoff. While the NIC is full,
/// connections are not attempted, and are considered again later.
#[derive(Clone, Copy, Debug)]
pub struct Benefit<R> {
    remaining: R,
    least: u64,
    price: u64,
}

impl<R: Remaining> Benefit<R> {
    /// Creates a policy for which a handoff pays off if `remaining` predicts at least `enqueues` enqueues.
    pub fn new(remaining: R, enqueues: u32) -> Self {
        let least = (u64::from(enqueues) * FINE).clamp(1, MOST);
        Self {
            remaining,
            least,
            price: least,
        }
    }

    fn decide(&mut self, view: &View) -> Decision {
        let price = match view.nic_is_full() {
            true => self.price + self.price.div_ceil(DEARER),
            false => self.price - self.price / CHEAPER,
        };
        self.price = price.clamp(self.least, MOST);
        let benefit = self.remaining.remaining(view).saturating_mul(FINE);
        Decision::hand_off_if(!view.nic_is_full() && benefit >= self.price)
    }
}

impl<R: Remaining> Selection for Benefit<R> {
    fn on_established(&mut self, view: &View) -> Decision {
        self.decide(view)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        self.decide(view)
    }

    fn next_look(&self, view: &View) -> NextLook {
        NextLook::at_enqueues(view.enqueues.saturating_add(1), view)
    }

    fn on_closed(&mut self, life: &Life) {
        self.remaining.learn(life);
    }

    /// The benefit is the same after a refusal, or after the connection came back.
    fn reconsiders(&self, _view: &View) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;

    fn with_left(left: u32, is_full: bool) -> View {
        let view = view(80, 3, 4);
        View {
            foreseen_enqueues: Some(4 + left),
            nic_connections: if is_full { view.nic_soft_limit } else { 0 },
            ..view
        }
    }

    #[test]
    fn a_handoff_must_have_a_benefit() {
        let mut policy = Benefit::new(Foreseen, 8);
        assert_eq!(policy.on_send(&with_left(7, false)), Decision::Stay);
        assert_eq!(policy.on_send(&with_left(8, false)), Decision::HandOff);
        assert_eq!(
            policy.on_established(&with_left(8, false)),
            Decision::HandOff
        );
        assert_eq!(policy.on_send(&view(80, 0, 1)), Decision::Stay, "unknown");
    }

    #[test]
    fn scarce_places_go_to_long_connections() {
        let mut policy = Benefit::new(Foreseen, 8);
        for _ in 0..100 {
            assert_eq!(policy.on_send(&with_left(1 << 20, true)), Decision::Stay);
        }
        assert_eq!(policy.on_send(&with_left(8, false)), Decision::Stay);
        assert_eq!(
            policy.on_send(&with_left(1 << 20, false)),
            Decision::HandOff
        );
        for _ in 0..10_000 {
            policy.on_send(&with_left(0, false));
        }
        assert_eq!(policy.on_send(&with_left(8, false)), Decision::HandOff);
    }
}

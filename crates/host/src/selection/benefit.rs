//! Selection by expected benefit.

use super::{Decision, Life, NextLook, Selection, View};
use std::fmt::Debug;

/// Whenever the NIC is full, a place on it is dearer by one part in so many.
const DEARER: u64 = 32;
/// Whenever it is not, cheaper by one part in so many.
const CHEAPER: u64 = 512;
/// Parts of an enqueue that prices are told in.
const FINE: u64 = 1 << 10;
/// The highest price, so that it does not take for ever to fall.
const MOST: u64 = FINE << 20;

/// Tells what a connection is going to send.
pub trait Remaining: Debug + Send {
    /// Enqueues to its send buffer from now on, about.
    fn remaining(&self, view: &View) -> u64;

    /// A connection has ended.
    fn learn(&mut self, life: &Life) {
        let _ = life;
    }
}

/// What a log says that is being replayed; nothing is left where nobody knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Foreseen;

impl Remaining for Foreseen {
    fn remaining(&self, view: &View) -> u64 {
        let all = view.foreseen_enqueues.unwrap_or(0);
        all.saturating_sub(view.enqueues).into()
    }
}

/// The benefit of a handoff is what is saved for each packet to come, less what the handoff costs (handoff-policies 3.3): it pays from so
/// many enqueues to come on. Where places on the NIC are scarce, those are to have one that benefit most: a place has a price, which rises
/// while the NIC is full and falls while it is not, never below what a handoff costs. Who is asked about while it is full is not attempted, and
/// asked about again.
#[derive(Clone, Copy, Debug)]
pub struct Benefit<R> {
    remaining: R,
    least: u64,
    price: u64,
}

impl<R: Remaining> Benefit<R> {
    /// A handoff pays if `remaining` tells of so many enqueues to come.
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

    /// What it gains is as good a reason after a refusal, or when it came back, as before.
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
    fn a_handoff_has_to_pay() {
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
    fn scarce_places_are_dear() {
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

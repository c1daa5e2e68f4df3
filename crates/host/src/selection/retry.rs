//! Retries after a refusal.

use super::{Decision, Life, NextLook, Selection, View, Work};
use baton_wire::{Endpoint, Span};

/// Follows another policy, but attempts again at each send request, as soon as the NIC is known to have capacity, to hand off a connection
/// whose attempt failed or that came back from the NIC. The framework of the paper does not consider such connections again.
#[derive(Debug)]
pub struct Retry {
    policy: Box<dyn Selection>,
}

impl Retry {
    /// Creates a policy that follows `policy` and retries.
    pub fn new(policy: Box<dyn Selection>) -> Self {
        Self { policy }
    }
}

impl Selection for Retry {
    fn on_established(&mut self, view: &View) -> Decision {
        self.policy.on_established(view)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        match view.failures > 0 || view.was_offloaded {
            true => Decision::hand_off_if(!view.nic_is_full()),
            false => self.policy.on_send(view),
        }
    }

    fn on_receive(&mut self, view: &View) -> Decision {
        self.policy.on_receive(view)
    }

    fn next_look(&self, view: &View) -> NextLook {
        match view.failures > 0 || view.was_offloaded {
            true => NextLook {
                enqueues: view.enqueues + 1,
                ..self.policy.next_look(view)
            },
            false => self.policy.next_look(view),
        }
    }

    fn on_closed(&mut self, life: &Life) {
        self.policy.on_closed(life);
    }

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }

    fn takes_back(&mut self, view: &View) -> bool {
        self.policy.takes_back(view)
    }

    fn least_stay(&self, local: Endpoint, usual: Span) -> Span {
        self.policy.least_stay(local, usual)
    }

    fn wants_work(&self) -> bool {
        self.policy.wants_work()
    }

    fn on_work(&mut self, work: &Work) {
        self.policy.on_work(work);
    }
}

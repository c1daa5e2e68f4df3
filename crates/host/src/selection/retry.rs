//! A refusal that is not final.

use super::{Decision, Life, NextLook, Selection, View};

/// As another policy, and a connection whose attempt failed, or that the NIC was relieved of, is attempted again at each send request, as
/// soon as the NIC is known to have room. The framework of the paper leaves it alone.
#[derive(Debug)]
pub struct Retry {
    policy: Box<dyn Selection>,
}

impl Retry {
    /// As this policy says, and again.
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
}

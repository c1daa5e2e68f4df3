//! Large responses stay on the host.

use super::{Decision, Life, NextLook, Selection, View, Work};
use baton_wire::{Endpoint, Span};

/// Follows another policy, but takes a connection back when it begins a large response, and hands it off again at its next request: for NICs
/// whose cost per byte is above the host's.
#[derive(Debug)]
pub struct Bulk {
    bytes: u64,
    policy: Box<dyn Selection>,
}

impl Bulk {
    /// Creates a policy that keeps responses of at least `bytes` bytes on the host, and otherwise follows `policy`.
    pub fn new(bytes: u64, policy: Box<dyn Selection>) -> Self {
        Self { bytes, policy }
    }

    fn is_large(&self, view: &View) -> bool {
        view.response_bytes >= self.bytes
    }
}

impl Selection for Bulk {
    fn on_established(&mut self, view: &View) -> Decision {
        self.policy.on_established(view)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        match self.is_large(view) || view.was_offloaded {
            true => Decision::Stay,
            false => self.policy.on_send(view),
        }
    }

    /// A connection that came back was selected by the other policy before, which may want it on the NIC again.
    fn on_receive(&mut self, view: &View) -> Decision {
        match view.was_offloaded {
            true => Decision::hand_off_if(!view.nic_is_full() && !self.policy.takes_back(view)),
            false => self.policy.on_receive(view),
        }
    }

    fn on_closed(&mut self, life: &Life) {
        self.policy.on_closed(life);
    }

    fn reconsiders(&self, view: &View) -> bool {
        view.was_offloaded || self.policy.reconsiders(view)
    }

    fn next_look(&self, view: &View) -> NextLook {
        match view.was_offloaded {
            true => NextLook {
                receives: view.receives + 1,
                ..NextLook::NEVER
            },
            false => self.policy.next_look(view),
        }
    }

    fn takes_back(&mut self, view: &View) -> bool {
        self.is_large(view) || self.policy.takes_back(view)
    }

    /// A large response may begin, and end, at any time.
    fn least_stay(&self, _local: Endpoint, _usual: Span) -> Span {
        Span::ZERO
    }

    fn wants_work(&self) -> bool {
        self.policy.wants_work()
    }

    fn on_work(&mut self, work: &Work) {
        self.policy.on_work(work);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fcfs;
    use super::super::tests::view;
    use super::*;

    #[test]
    fn large_responses_are_sent_by_the_host() {
        let mut policy = Bulk::new(1 << 20, Box::new(Fcfs));
        let of = |response_bytes, was_offloaded| View {
            response_bytes,
            was_offloaded,
            ..view(80, 0, 1)
        };
        assert_eq!(policy.on_established(&of(0, false)), Decision::HandOff);
        assert!(!policy.takes_back(&of((1 << 20) - 1, true)));
        assert!(policy.takes_back(&of(1 << 20, true)));
        let back = of(1 << 20, true);
        assert_eq!(policy.on_send(&back), Decision::Stay, "it is not over");
        assert!(policy.reconsiders(&back));
        assert_eq!(policy.next_look(&back).receives, back.receives + 1);
        let next = of(0, true);
        assert_eq!(policy.on_receive(&next), Decision::HandOff);
        let full = View {
            nic_soft_limit: 0,
            ..next
        };
        assert_eq!(policy.on_receive(&full), Decision::Stay);
    }
}

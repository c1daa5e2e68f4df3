//! Selection when data was received.

use super::{Decision, NextLook, Selection, View};

/// Rn: attempts to hand off a connection once, when the application reads from it for the n-th time. At that time a request has arrived,
/// and nothing of its response has been sent.
#[derive(Clone, Copy, Debug)]
pub struct AtReceive {
    /// n.
    pub receives: u32,
}

impl Selection for AtReceive {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::hand_off_if(self.receives == 0)
    }

    fn on_send(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_receive(&mut self, view: &View) -> Decision {
        Decision::hand_off_if(view.receives == self.receives)
    }

    fn next_look(&self, view: &View) -> NextLook {
        match self.receives > view.receives {
            true => NextLook {
                receives: self.receives,
                ..NextLook::NEVER
            },
            false => NextLook::NEVER,
        }
    }
}

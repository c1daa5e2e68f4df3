//! First in, first out.

use crate::Replacement;
use crate::list::{Links, List};

/// First in, first out: hits change nothing.
#[derive(Clone, Debug)]
pub struct Fifo {
    links: Links,
    list: List,
}

impl Fifo {
    /// Creates a policy for slots below `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            links: Links::new(slots),
            list: List::new(),
        }
    }
}

impl Replacement for Fifo {
    fn inserted(&mut self, slot: u32, _key: u64, _bytes: u32) {
        self.list.push(&mut self.links, slot);
    }

    fn used(&mut self, slot: u32) {
        debug_assert!(self.links.is_linked(slot), "slot {slot} is empty");
    }

    fn removed(&mut self, slot: u32) {
        self.list.remove(&mut self.links, slot);
    }

    fn victim(&mut self) -> Option<u32> {
        self.list.pop_oldest(&mut self.links)
    }

    fn check(&self) {
        self.list.check(&self.links);
    }
}

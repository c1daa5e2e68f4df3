//! Least recently used.

use crate::Replacement;
use crate::list::{Links, List};

/// Least recently used (the policy of the NIC data cache: network interface data caching paper, section 4.2).
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    list: List,
}

impl Lru {
    /// Creates a policy for slots below `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            links: Links::new(slots),
            list: List::new(),
        }
    }
}

impl Replacement for Lru {
    fn inserted(&mut self, slot: u32, _key: u64, _bytes: u32) {
        self.list.push(&mut self.links, slot);
    }

    fn used(&mut self, slot: u32) {
        self.list.renew(&mut self.links, slot);
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

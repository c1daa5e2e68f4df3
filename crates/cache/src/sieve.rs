//! SIEVE.

use crate::Replacement;
use crate::list::{Links, List};

/// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is simpler than LRU", NSDI 2024).
///
/// A queue of blocks that hits only mark. A hand moves from the oldest to the newest block and starts over; it clears marks and evicts the
/// first block without one. Unlike in CLOCK, surviving blocks keep their positions, so that the hand soon reaches new blocks.
#[derive(Clone, Debug)]
pub struct Sieve {
    links: Links,
    queue: List,
    visited: Vec<bool>,
    /// Position of the hand; `None` means the oldest block.
    hand: Option<u32>,
}

impl Sieve {
    /// Creates a policy for slots below `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            links: Links::new(slots),
            queue: List::new(),
            visited: vec![false; slots as usize],
            hand: None,
        }
    }
}

impl Replacement for Sieve {
    fn inserted(&mut self, slot: u32, _key: u64, _bytes: u32) {
        self.queue.push(&mut self.links, slot);
        self.visited[slot as usize] = false;
    }

    fn used(&mut self, slot: u32) {
        debug_assert!(self.links.is_linked(slot), "slot {slot} is empty");
        self.visited[slot as usize] = true;
    }

    fn removed(&mut self, slot: u32) {
        if self.hand == Some(slot) {
            self.hand = self.links.newer(slot);
        }
        self.queue.remove(&mut self.links, slot);
    }

    fn victim(&mut self) -> Option<u32> {
        let oldest = self.queue.oldest()?;
        let mut slot = self.hand.unwrap_or(oldest);
        // This terminates within two rounds: the first clears every mark.
        while self.visited[slot as usize] {
            self.visited[slot as usize] = false;
            slot = self.links.newer(slot).unwrap_or(oldest);
        }
        self.hand = Some(slot);
        self.removed(slot);
        Some(slot)
    }

    fn check(&self) {
        self.queue.check(&self.links);
        if let Some(hand) = self.hand {
            assert!(self.links.is_linked(hand), "the hand is at an empty slot");
        }
    }
}

//! Least frequently used.

use crate::Replacement;
use std::collections::BTreeSet;

/// Least frequently used among the cached blocks. The count of a block restarts when the block returns to the cache. Among equally frequent
/// blocks, the least recently used is evicted.
#[derive(Clone, Debug)]
pub struct Lfu {
    /// Rank of each slot in use: its position in `order`.
    ranks: Vec<Option<Rank>>,
    order: BTreeSet<(Rank, u32)>,
    /// Number of uses of all blocks so far, which serves as the time.
    now: u64,
}

/// Rank of a block; the lowest rank is evicted first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    uses: u64,
    last_use: u64,
}

impl Lfu {
    /// Creates a policy for slots below `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            ranks: vec![None; slots as usize],
            order: BTreeSet::new(),
            now: 0,
        }
    }

    fn place(&mut self, slot: u32, uses: u64) {
        self.now += 1;
        let rank = Rank {
            uses,
            last_use: self.now,
        };
        self.ranks[slot as usize] = Some(rank);
        self.order.insert((rank, slot));
    }

    fn take(&mut self, slot: u32) -> Option<Rank> {
        let rank = self.ranks[slot as usize].take();
        debug_assert!(rank.is_some(), "slot {slot} is empty");
        if let Some(rank) = rank {
            self.order.remove(&(rank, slot));
        }
        rank
    }
}

impl Replacement for Lfu {
    fn inserted(&mut self, slot: u32, _key: u64, _bytes: u32) {
        debug_assert!(self.ranks[slot as usize].is_none(), "slot {slot} is in use");
        self.place(slot, 1);
    }

    fn used(&mut self, slot: u32) {
        let uses = self.take(slot).map_or(0, |rank| rank.uses);
        self.place(slot, uses + 1);
    }

    fn removed(&mut self, slot: u32) {
        self.take(slot);
    }

    fn victim(&mut self) -> Option<u32> {
        let (_, slot) = self.order.pop_first()?;
        self.ranks[slot as usize] = None;
        Some(slot)
    }

    fn check(&self) {
        let in_use = self.ranks.iter().flatten().count();
        assert_eq!(in_use, self.order.len(), "every slot in use has a rank");
        for (rank, slot) in &self.order {
            assert_eq!(self.ranks[*slot as usize], Some(*rank), "slot {slot}");
            assert!(rank.uses >= 1 && rank.last_use <= self.now);
        }
    }
}

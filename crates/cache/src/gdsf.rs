//! Greedy dual, size and frequency.

use crate::Replacement;
use std::collections::BTreeSet;

/// Greedy-Dual-Size with Frequency (Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching policy", HP Labs
/// 1998; Arlitt et al., Performance Evaluation Review 2000).
///
/// A block's priority is `L + uses * cost / size`. Here the cost of a miss is the number of bytes that cross the bus. The size is that of a
/// slot, which is the same for all blocks and therefore omitted: a block of 4096 content bytes is worth as much as four of 1024 that are
/// used as often. `L` is the priority of the last victim, so that unused blocks age.
#[derive(Clone, Debug)]
pub struct Gdsf {
    blocks: Vec<Option<Block>>,
    /// Priority, time of the last use, slot.
    order: BTreeSet<(u64, u64, u32)>,
    /// `L` of the papers.
    inflation: u64,
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u32,
    uses: u64,
    priority: u64,
    last_use: u64,
}

impl Gdsf {
    /// Creates a policy for slots below `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            blocks: vec![None; slots as usize],
            order: BTreeSet::new(),
            inflation: 0,
            now: 0,
        }
    }

    /// Puts a block with this number of uses into `slot`.
    fn place(&mut self, slot: u32, bytes: u32, uses: u64) {
        self.now += 1;
        let block = Block {
            bytes,
            uses,
            priority: self.inflation + uses * u64::from(bytes),
            last_use: self.now,
        };
        self.order.insert((block.priority, block.last_use, slot));
        self.blocks[slot as usize] = Some(block);
    }

    fn take(&mut self, slot: u32) -> Option<Block> {
        let block = self.blocks[slot as usize].take();
        debug_assert!(block.is_some(), "slot {slot} is empty");
        if let Some(block) = block {
            self.order.remove(&(block.priority, block.last_use, slot));
        }
        block
    }
}

impl Replacement for Gdsf {
    fn inserted(&mut self, slot: u32, _key: u64, bytes: u32) {
        debug_assert!(
            self.blocks[slot as usize].is_none(),
            "slot {slot} is in use"
        );
        self.place(slot, bytes, 1);
    }

    fn used(&mut self, slot: u32) {
        if let Some(block) = self.take(slot) {
            self.place(slot, block.bytes, block.uses + 1);
        }
    }

    fn removed(&mut self, slot: u32) {
        self.take(slot);
    }

    fn victim(&mut self) -> Option<u32> {
        let (priority, _, slot) = self.order.pop_first()?;
        self.blocks[slot as usize] = None;
        self.inflation = priority;
        Some(slot)
    }

    fn check(&self) {
        let in_use = self.blocks.iter().flatten().count();
        assert_eq!(in_use, self.order.len(), "every slot in use has a priority");
        for &(priority, last_use, slot) in &self.order {
            let block = self.blocks[slot as usize].expect("it is in use");
            assert_eq!((block.priority, block.last_use), (priority, last_use));
            assert!(
                priority >= self.inflation,
                "no priority is below that of the last victim"
            );
        }
    }
}

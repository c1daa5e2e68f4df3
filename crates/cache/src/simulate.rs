//! Replays references through one cache.

use crate::{Admission, AdmissionConfig, Replacement, ReplacementConfig};

/// Marks the absence of a slot.
const NONE: u32 = u32::MAX;

/// A request for a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Number of the block; blocks are numbered densely from 0.
    pub block: u32,
    /// Number of content bytes requested, which a hit saves.
    pub bytes: u32,
}

/// Counts of hits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hits {
    /// Number of references that found their block in the cache.
    pub hits: u64,
    /// Bytes of these references.
    pub bytes: u64,
}

/// A cache of equal slots with its policies.
#[derive(Debug)]
pub struct Simulation {
    replacement: Box<dyn Replacement>,
    admission: Box<dyn Admission>,
    /// Slot of each block.
    slots: Vec<u32>,
    /// Block in each slot that was ever used.
    blocks: Vec<u32>,
    capacity: u32,
    hits: Hits,
}

impl Simulation {
    /// Creates an empty cache of `capacity` slots for blocks below `blocks`.
    pub fn new(
        capacity: u32,
        blocks: usize,
        replacement: ReplacementConfig,
        admission: AdmissionConfig,
    ) -> Self {
        Self {
            replacement: replacement.build(capacity),
            admission: admission.build(capacity),
            slots: vec![NONE; blocks],
            blocks: Vec::new(),
            capacity,
            hits: Hits::default(),
        }
    }

    /// References a block. Returns whether it was a hit. If not, the block is now in the cache, unless it was not admitted.
    pub fn reference(&mut self, reference: Reference) -> bool {
        let Reference { block, bytes } = reference;
        let slot = self.slots[block as usize];
        if slot != NONE {
            self.replacement.used(slot);
            self.admission.used(u64::from(block));
            self.hits.hits += 1;
            self.hits.bytes += u64::from(bytes);
            return true;
        }
        let full = self.blocks.len() == self.capacity as usize;
        if self.admission.admits(u64::from(block), bytes, full)
            && let Some(slot) = self.room(full)
        {
            self.slots[block as usize] = slot;
            self.blocks[slot as usize] = block;
            self.replacement.inserted(slot, u64::from(block), bytes);
        }
        false
    }

    /// Returns an empty slot, or `None` if the cache has no slots at all.
    fn room(&mut self, full: bool) -> Option<u32> {
        if !full {
            self.blocks.push(NONE);
            return Some(self.blocks.len() as u32 - 1);
        }
        let slot = self.replacement.victim()?;
        self.slots[self.blocks[slot as usize] as usize] = NONE;
        Some(slot)
    }

    /// Returns the hits so far.
    pub const fn hits(&self) -> Hits {
        self.hits
    }

    /// Asserts that slots and blocks agree, and the policy's invariants.
    ///
    /// # Panics
    /// Panics if they are violated.
    pub fn check(&self) {
        for (slot, &block) in (0u32..).zip(&self.blocks) {
            assert_eq!(self.slots[block as usize], slot, "block {block}");
        }
        let cached = self.slots.iter().filter(|&&slot| slot != NONE).count();
        assert_eq!(cached, self.blocks.len(), "every used slot has a block");
        assert!(cached <= self.capacity as usize, "more blocks than slots");
        self.replacement.check();
    }
}

//! The directory of one NIC's cache: the place and the revision of each cached block.

use super::NicCacheConfig;
use crate::sockets::FileId;
use baton_cache::{Admission, AdmissionConfig, Replacement};
use rustc_hash::FxHashMap;

/// A cached block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) file: FileId,
    /// Number of the block within the file.
    pub(crate) number: u32,
    /// Revision of the file when the block was put into the cache.
    pub(crate) since: u32,
    /// Length of the block; the last block of a file is partial.
    pub(crate) bytes: u32,
}

impl Block {
    /// Returns a block's key for policies.
    fn key(file: FileId, number: u32) -> u64 {
        u64::from(file.0) << 32 | u64::from(number)
    }
}

/// The directory. The block in `slot` is at `slot * block_bytes` in the NIC's cache.
#[derive(Debug)]
pub(crate) struct Directory {
    slots: Vec<Option<Block>>,
    index: FxHashMap<(FileId, u32), u32>,
    free: Vec<u32>,
    replacement: Box<dyn Replacement>,
    admission: Box<dyn Admission>,
    admits_all: bool,
}

impl Directory {
    /// Creates an empty directory; `replacement` overrides the policy that `config` names.
    pub(crate) fn new(
        config: &NicCacheConfig,
        blocks: u32,
        replacement: Option<Box<dyn Replacement>>,
    ) -> Self {
        Self {
            slots: vec![None; blocks as usize],
            index: FxHashMap::default(),
            free: (0..blocks).rev().collect(),
            replacement: replacement.unwrap_or_else(|| config.replacement.build(blocks)),
            admission: config.admission.build(blocks),
            admits_all: config.admission == AdmissionConfig::All,
        }
    }

    /// Returns the number of blocks in the directory.
    pub(crate) fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Returns the maximum number of blocks.
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.slots.iter().flatten()
    }

    pub(crate) fn find(&self, file: FileId, number: u32) -> Option<(u32, Block)> {
        let slot = *self.index.get(&(file, number))?;
        Some((slot, self.slots[slot as usize]?))
    }

    /// Records a request that hit the block in `slot`.
    pub(crate) fn used(&mut self, slot: u32, block: &Block) {
        self.replacement.used(slot);
        self.admission.used(Block::key(block.file, block.number));
    }

    /// Reports whether a requested block is admitted. `begins` says that this is a new request, and not a later packet of the same one.
    pub(crate) fn admits(&mut self, file: FileId, number: u32, bytes: u32, begins: bool) -> bool {
        let full = self.free.is_empty();
        self.admits_all || begins && self.admission.admits(Block::key(file, number), bytes, full)
    }

    /// Returns an empty slot, and whether a block was evicted for it.
    pub(crate) fn take_slot(&mut self) -> Option<(u32, bool)> {
        if let Some(slot) = self.free.pop() {
            return Some((slot, false));
        }
        let slot = self.replacement.victim()?;
        let block = self.slots[slot as usize].expect("a policy names slots in use");
        self.slots[slot as usize] = None;
        self.index.remove(&(block.file, block.number));
        Some((slot, true))
    }

    /// Puts a block into an empty slot.
    pub(crate) fn put(&mut self, slot: u32, block: Block) {
        debug_assert!(
            self.slots[slot as usize].is_none(),
            "slot {slot} is empty before"
        );
        let before = self.index.insert((block.file, block.number), slot);
        debug_assert_eq!(before, None, "a block is cached once");
        self.slots[slot as usize] = Some(block);
        let key = Block::key(block.file, block.number);
        self.replacement.inserted(slot, key, block.bytes);
    }

    /// Removes a block. Returns whether it was in the directory.
    pub(crate) fn remove(&mut self, file: FileId, number: u32) -> bool {
        let Some(slot) = self.index.remove(&(file, number)) else {
            return false;
        };
        self.slots[slot as usize] = None;
        self.replacement.removed(slot);
        self.free.push(slot);
        true
    }

    /// Returns the numbers of a file's blocks from `first` on.
    pub(crate) fn blocks_from(&self, file: FileId, first: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .iter()
            .filter(|block| block.file == file && block.number >= first)
            .map(|block| block.number)
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Asserts that names, slots and free slots are consistent.
    pub(crate) fn check(&self) {
        self.replacement.check();
        for (slot, block) in self.slots.iter().enumerate() {
            let Some(block) = block else { continue };
            assert_eq!(
                self.index.get(&(block.file, block.number)),
                Some(&(slot as u32)),
                "a block is found by its name"
            );
            assert!(block.bytes > 0, "no block is empty");
        }
        assert_eq!(
            self.iter().count(),
            self.index.len(),
            "each name leads to a block of its own"
        );
        assert_eq!(
            self.index.len() + self.free.len(),
            self.slots.len(),
            "a slot is free or in use"
        );
        let mut free = self.free.clone();
        free.sort_unstable();
        free.dedup();
        assert_eq!(free.len(), self.free.len(), "a slot is free once");
    }
}

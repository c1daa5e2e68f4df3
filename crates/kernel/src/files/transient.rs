//! Files whose content is not requested again (live streams, data-caching 4.2). Their blocks leave an adapter's cache once delivered.

use baton_host::FileId;
use baton_host::layer::AdapterId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// A block of a file in the cache of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CachedBlock {
    /// The adapter that has the cache.
    pub adapter: AdapterId,
    /// The file.
    pub file: FileId,
    /// Number of the block within the file.
    pub number: u32,
}

/// Blocks that contain data given to a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    adapter: AdapterId,
    file: FileId,
    first: u32,
    last: u32,
}

impl Blocks {
    fn iter(self) -> impl Iterator<Item = CachedBlock> {
        let Self {
            adapter,
            file,
            first,
            last,
        } = self;
        (first..=last).map(move |number| CachedBlock {
            adapter,
            file,
            number,
        })
    }
}

/// Transient files, and the numbers of references to their blocks.
#[derive(Debug, Default)]
pub(crate) struct Transient {
    files: FxHashSet<FileId>,
    /// Files of which more will be sent, so that their blocks stay.
    held: FxHashSet<FileId>,
    /// Number of runs in each block that were given to sockets and are still needed; zero only while the file is held.
    references: FxHashMap<CachedBlock, u32>,
    /// Blocks that are no longer needed.
    delivered: VecDeque<CachedBlock>,
}

impl Transient {
    /// Declares a file transient.
    pub(crate) fn add(&mut self, file: FileId) {
        self.files.insert(file);
    }

    /// Returns whether a file is transient.
    pub(crate) fn has(&self, file: FileId) -> bool {
        !self.files.is_empty() && self.files.contains(&file)
    }

    /// Keeps the blocks of a file.
    pub(crate) fn hold(&mut self, file: FileId) {
        self.held.insert(file);
    }

    /// Releases the blocks of a file as soon as they are no longer needed.
    pub(crate) fn let_go(&mut self, file: FileId) {
        if !self.held.remove(&file) {
            return;
        }
        let first = self.delivered.len();
        let references = self.references.iter();
        let unused = references.filter(|&(block, &count)| block.file == file && count == 0);
        self.delivered.extend(unused.map(|(&block, _)| block));
        self.delivered.make_contiguous()[first..].sort_unstable();
        for block in self.delivered.range(first..) {
            self.references.remove(block);
        }
    }

    /// Adds a reference to blocks of a transient file that contain data given to a socket.
    pub(crate) fn refer(
        &mut self,
        adapter: AdapterId,
        file: FileId,
        numbers: RangeInclusive<u32>,
    ) -> Blocks {
        let blocks = Blocks {
            adapter,
            file,
            first: *numbers.start(),
            last: *numbers.end(),
        };
        for block in blocks.iter() {
            *self.references.entry(block).or_insert(0) += 1;
        }
        blocks
    }

    /// Removes a reference to blocks.
    pub(crate) fn release(&mut self, blocks: Blocks) {
        for block in blocks.iter() {
            let Some(references) = self.references.get_mut(&block) else {
                debug_assert!(false, "{block:?} is referred to");
                continue;
            };
            *references -= 1;
            if *references == 0 && !self.held.contains(&block.file) {
                self.references.remove(&block);
                self.delivered.push_back(block);
            }
        }
    }

    /// Returns the next block that is no longer needed.
    pub(crate) fn poll_delivered(&mut self) -> Option<CachedBlock> {
        self.delivered.pop_front()
    }

    /// Asserts that the numbers of references match the `lent` blocks.
    pub(crate) fn check(&self, lent: impl Iterator<Item = Blocks>) {
        let mut counts: FxHashMap<CachedBlock, u32> = FxHashMap::default();
        for block in lent.flat_map(Blocks::iter) {
            *counts.entry(block).or_insert(0) += 1;
        }
        for (block, &references) in &self.references {
            let lent = counts.remove(block).unwrap_or(0);
            assert_eq!(references, lent, "{block:?} has a reference per loan");
            let is_held = self.held.contains(&block.file);
            assert!(references > 0 || is_held, "{block:?} is needed or held");
        }
        assert!(counts.is_empty(), "lent blocks have references: {counts:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(3);

    fn drain(transient: &mut Transient) -> Vec<(u8, u32)> {
        let delivered = std::iter::from_fn(|| transient.poll_delivered());
        delivered
            .map(|block| (block.adapter.0, block.number))
            .collect()
    }

    #[test]
    fn a_block_goes_with_its_last_reference_on_each_adapter() {
        let mut transient = Transient::default();
        transient.add(FILE);
        assert!(transient.has(FILE) && !transient.has(FileId(4)));
        let here = [0..=1, 1..=2].map(|blocks| transient.refer(AdapterId(0), FILE, blocks));
        let there = transient.refer(AdapterId(1), FILE, 1..=1);
        transient.release(here[0]);
        assert_eq!(drain(&mut transient), [(0, 0)]);
        transient.release(there);
        assert_eq!(drain(&mut transient), [(1, 1)]);
        transient.release(here[1]);
        assert_eq!(drain(&mut transient), [(0, 1), (0, 2)]);
        transient.check(std::iter::empty());
    }

    #[test]
    fn a_held_block_waits_until_it_is_released() {
        let mut transient = Transient::default();
        transient.add(FILE);
        transient.hold(FILE);
        let first = transient.refer(AdapterId(0), FILE, 0..=2);
        transient.release(first);
        assert_eq!(drain(&mut transient), []);
        let second = transient.refer(AdapterId(0), FILE, 1..=1);
        transient.let_go(FILE);
        assert_eq!(drain(&mut transient), [(0, 0), (0, 2)]);
        transient.check(std::iter::once(second));
        transient.release(second);
        assert_eq!(drain(&mut transient), [(0, 1)]);
    }
}

//! Cache memory as a set of blocks: each holds the data of one insert, in a reference-counted buffer of its own.
//!
//! A reference to a part of a block stays valid when another insert replaces the block. TCP therefore sends, and retransmits, the data that
//! the cache held when the SEND was requested.

use baton_bus::descriptor::CACHE_UNIT_BYTES;
use baton_bus::descriptor::MOST_BLOCKS_SENT;
use baton_bus::link::Inline;
use baton_wire::Payload;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The data of one insert.
#[derive(Debug)]
pub(crate) struct Block<P> {
    /// Number of the insert.
    insert: u64,
    len: u32,
    /// Empty until the data has been fetched.
    data: OnceLock<P>,
}

impl<P: Payload + Inline> Block<P> {
    /// Stores the data once it has been fetched.
    pub(crate) fn fill(&self, data: P) {
        debug_assert_eq!(data.len(), self.len as usize);
        let filled = self.data.set(data.stored());
        debug_assert!(filled.is_ok(), "a block is fetched once");
    }
}

/// A part of a block.
#[derive(Clone, Debug)]
pub(crate) struct Reference<P> {
    block: Arc<Block<P>>,
    start: u32,
    len: u32,
}

/// A range of the cache, as the parts of blocks that make it up.
pub(crate) type References<P> = SmallVec<[Reference<P>; MOST_BLOCKS_SENT as usize]>;

/// A part that is more than this many times shorter than its block is copied. Otherwise one unacknowledged byte could keep a whole block in
/// memory after it has left the cache.
const KEPT_FOR: usize = 4;

impl<P: Payload + Inline> Reference<P> {
    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of the insert whose data has not been fetched yet, or `None` if the data is available.
    pub(crate) fn awaits(&self) -> Option<u64> {
        self.block.data.get().is_none().then_some(self.block.insert)
    }

    /// Removes and returns the first bytes, at most `most`, or returns `None` if the data has not been fetched yet.
    pub(crate) fn take(&mut self, most: usize) -> Option<P> {
        let len = (self.len as usize).min(most);
        let block = self.block.data.get()?;
        let data = block.slice(self.start as usize, len);
        self.start += len as u32;
        self.len -= len as u32;
        Some(match len * KEPT_FOR < block.len() {
            true => data.stored(),
            false => data,
        })
    }
}

/// A region of cache memory. Blocks do not overlap, so the region never holds more than its size.
#[derive(Debug)]
pub(crate) struct Blocks<P> {
    bytes: u32,
    /// Blocks by the offset of their first byte.
    blocks: BTreeMap<u32, Arc<Block<P>>>,
}

impl<P: Payload + Inline> Blocks<P> {
    /// Creates an empty region.
    pub(crate) fn new(bytes: u32) -> Self {
        let blocks = BTreeMap::new();
        Self { bytes, blocks }
    }

    /// Returns the size of the region in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns the number of bytes in blocks.
    pub(crate) fn used(&self) -> u32 {
        self.blocks.values().map(|block| block.len).sum()
    }

    /// Returns whether a range lies within the region.
    pub(crate) fn admits(&self, offset: u32, len: u32) -> bool {
        is_inside(offset, len, self.bytes)
    }

    /// Adds a block at `offset` for the insert with this number and removes all blocks that overlap it.
    pub(crate) fn insert(&mut self, offset: u32, len: u32, insert: u64) -> Arc<Block<P>> {
        debug_assert!(len > 0 && self.admits(offset, len));
        let end = offset + len;
        while let Some((&start, old)) = self.blocks.range(..end).next_back()
            && start + old.len > offset
        {
            self.blocks.remove(&start);
        }
        let data = OnceLock::new();
        let block = Arc::new(Block { insert, len, data });
        self.blocks.insert(offset, Arc::clone(&block));
        block
    }

    /// Returns references to the `len` bytes at `offset`, or `None` unless blocks cover all of them.
    pub(crate) fn refer(&self, offset: u32, len: u32) -> Option<References<P>> {
        let (mut at, end) = (offset, offset.checked_add(len)?);
        let (&first, _) = self.blocks.range(..=offset).next_back()?;
        let mut parts = References::new();
        for (&start, block) in self.blocks.range(first..end) {
            let block_end = start + block.len;
            if start > at || block_end <= at {
                return None;
            }
            parts.push(Reference {
                block: Arc::clone(block),
                start: at - start,
                len: block_end.min(end) - at,
            });
            at = block_end.min(end);
        }
        (at == end).then_some(parts)
    }

    /// Asserts the invariants of the region.
    pub(crate) fn check(&self) {
        let mut free = 0;
        for (&start, block) in &self.blocks {
            assert!(start >= free, "blocks do not overlap");
            assert!(start.is_multiple_of(CACHE_UNIT_BYTES) && block.len > 0);
            free = start + block.len;
        }
        assert!(free <= self.bytes, "all blocks lie in the cache");
    }
}

fn is_inside(offset: u32, len: u32, bytes: u32) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn bytes(byte: u8, len: usize) -> Bytes {
        vec![byte; len].into()
    }

    fn read(parts: Option<References<Bytes>>) -> Option<Vec<u8>> {
        let parts = parts?.into_iter();
        let taken = parts.map(|mut part| part.take(usize::MAX).expect("it is here"));
        Some(taken.collect::<Vec<_>>().concat())
    }

    #[test]
    fn a_range_can_be_read_only_if_it_is_cached_as_a_whole() {
        let mut blocks = Blocks::new(8192);
        for (at, byte) in [(0, 1), (1024, 2), (4096, 3)] {
            blocks.insert(at, 1024, at.into()).fill(bytes(byte, 1024));
        }
        blocks.check();
        let both = [bytes(1, 24), bytes(2, 76)].concat();
        assert_eq!(read(blocks.refer(1000, 100)), Some(both));
        for (offset, len) in [(2000, 49), (2048, 1), (4000, 100), (5119, 2), (u32::MAX, 2)] {
            assert!(blocks.refer(offset, len).is_none(), "{len} at {offset}");
        }
        assert_eq!(blocks.used(), 3 * 1024);
    }

    #[test]
    fn an_overlapped_block_is_removed_but_stays_readable_for_its_references() {
        let mut blocks = Blocks::new(8192);
        blocks.insert(0, 2048, 1).fill(bytes(1, 2048));
        blocks.insert(2048, 2048, 2).fill(bytes(2, 2048));
        let before = blocks.refer(1024, 2048);
        blocks.insert(1536, 1024, 3);
        blocks.check();
        assert!(blocks.refer(0, 1).is_none() && blocks.refer(3000, 1).is_none());
        let now = blocks.refer(2000, 8).expect("a block covers the range");
        assert_eq!(now[0].awaits(), Some(3));
        let expected = [bytes(1, 1024), bytes(2, 1024)].concat();
        assert_eq!(read(before), Some(expected));
        assert_eq!(blocks.used(), 1024);
    }

    #[test]
    fn a_small_reference_does_not_keep_the_whole_block_alive() {
        let mut blocks = Blocks::new(8192);
        let block = blocks.insert(0, 4096, 1);
        block.fill(bytes(1, 4096));
        let whole = block.data.get().expect("it is filled").clone();
        let taken = |len| {
            let mut parts = blocks.refer(100, len).expect("it is there");
            parts[0].take(usize::MAX).expect("it is filled")
        };
        let shares = |part: &Bytes| whole.as_ptr_range().contains(&part.as_ptr());
        assert!(shares(&taken(1024)) && !shares(&taken(1023)));
        assert_eq!(taken(10), bytes(1, 10));
    }
}

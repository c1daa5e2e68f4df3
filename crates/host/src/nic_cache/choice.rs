//! Decides whether content to be sent comes from the cache, and whether its block is put there.

use super::directory::{Block, Directory};
use super::{Bypass, Coherence, Freshness, NicCache, NicCacheStats};
use crate::sockets::FileId;

/// Content of a file within one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) file: FileId,
    /// Number of the block, and offset of the content within the block.
    pub(crate) number: u32,
    pub(crate) within: u32,
    pub(crate) len: u32,
    /// Revision of the file that is sent.
    pub(crate) revision: u32,
}

impl Content {
    /// Returns whether this is the first part of its block. Only first parts count as requests, because several parts of one request share a block.
    fn begins(&self) -> bool {
        self.within == 0
    }
}

/// Result of a lookup in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The content is in this slot.
    Cached { slot: u32 },
    /// The content is not cached. An obsolete version of its block was removed.
    Absent,
    /// The content cannot come from the cache, because the cache has a newer version of the block.
    Bypassed,
}

impl NicCache {
    /// Returns whether the NIC has reported the size of its cache and the cache is usable.
    pub(crate) fn is_ready(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns the counters of the cache.
    pub(crate) fn stats(&self) -> &NicCacheStats {
        &self.stats
    }

    /// Returns the current and the maximum number of blocks.
    pub(crate) fn len_and_capacity(&self) -> (u32, u32) {
        let directory = self.directory.as_ref();
        directory.map_or((0, 0), |directory| (directory.len(), directory.capacity()))
    }

    /// Returns the slot of a block of a file, of any revision.
    pub(crate) fn slot_of(&self, file: FileId, number: u32) -> Option<u32> {
        let (slot, _) = self.directory.as_ref()?.find(file, number)?;
        Some(slot)
    }

    /// Asserts the directory's invariants.
    pub(crate) fn check(&self) {
        if let Some(directory) = &self.directory {
            directory.check();
        }
    }

    /// Returns the part of the `most` bytes at `offset` of a file that is in the first block. Returns `None` if the block's number is too
    /// large.
    pub(crate) fn content(
        &self,
        file: FileId,
        revision: u32,
        offset: u64,
        most: u64,
    ) -> Option<Content> {
        let block = u64::from(self.config.block_bytes);
        let within = (offset % block) as u32;
        Some(Content {
            file,
            number: u32::try_from(offset / block).ok()?,
            within,
            len: most.min(block - u64::from(within)) as u32,
            revision,
        })
    }

    /// Returns the offset of the content's block within its file.
    pub(crate) fn start_of(&self, content: &Content) -> u64 {
        u64::from(content.number) * u64::from(self.config.block_bytes)
    }

    /// Returns the offset of a slot within the cache.
    pub(crate) fn offset(&self, slot: u32) -> u32 {
        slot * self.config.block_bytes
    }

    /// Returns the place of content in the cache, without counting a lookup.
    pub(crate) fn place_of(&self, content: &Content, coherence: &dyn Coherence) -> Option<u32> {
        let directory = self.directory.as_ref()?;
        let (slot, block) = directory.find(content.file, content.number)?;
        let is_same = coherence.compare(block.since, content.revision) == Freshness::Same;
        let is_there = is_same && content.within + content.len <= block.bytes;
        is_there.then(|| self.offset(slot) + content.within)
    }

    /// Looks content up. Returns `None` if the NIC has not yet reported the size of its cache.
    pub(crate) fn look_up(
        &mut self,
        content: &Content,
        coherence: &dyn Coherence,
    ) -> Option<Found> {
        self.stats.lookups += 1;
        let Some(directory) = &mut self.directory else {
            self.stats.bypass(Bypass::NotReady, content.len);
            return None;
        };
        let Some((slot, block)) = directory.find(content.file, content.number) else {
            return Some(Found::Absent);
        };
        match coherence.compare(block.since, content.revision) {
            Freshness::Same if content.within + content.len <= block.bytes => {
                if content.begins() {
                    directory.used(slot, &block);
                }
                self.stats.hits += 1;
                self.stats.hit_bytes += u64::from(content.len);
                return Some(Found::Cached { slot });
            }
            Freshness::Same => self.stats.grown += 1,
            Freshness::Older => self.stats.stale += 1,
            Freshness::Newer => {
                self.stats.bypass(Bypass::NewerCached, content.len);
                return Some(Found::Bypassed);
            }
        }
        directory.remove(content.file, content.number);
        Some(Found::Absent)
    }

    /// Returns an empty slot for a block that was not found and has `bytes` bytes, if it is admitted.
    pub(crate) fn make_place(&mut self, content: &Content, bytes: u32) -> Result<u32, Bypass> {
        let &Content { file, number, .. } = content;
        let directory = self.directory.as_mut().ok_or(Bypass::NotReady)?;
        if !directory.admits(file, number, bytes, content.begins()) {
            return Err(Bypass::NotAdmitted);
        }
        let (slot, evicted) = directory.take_slot().ok_or(Bypass::NotReady)?;
        self.stats.evictions += u64::from(evicted);
        self.stats.inserts += 1;
        Ok(slot)
    }

    /// Returns the blocks of a file that a change affects and that may be cached: those of `len` bytes at `offset` or, without a length,
    /// all from there on.
    pub(crate) fn changed_blocks(&self, file: FileId, offset: u64, len: Option<u64>) -> Vec<u32> {
        let first = *self.blocks(offset, 1).start();
        match (len, &self.directory) {
            (_, None) => Vec::new(),
            (Some(len), Some(_)) => self.blocks(offset, len).collect(),
            (None, Some(directory)) => directory.blocks_from(file, first),
        }
    }

    /// Removes the blocks of `len` bytes (at least one) at `offset` of a file, which have left main memory, because main memory must
    /// include the cache (data-caching 4.2). Calls `left` with the slot of each.
    pub(crate) fn exclude(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        mut left: impl FnMut(u32),
    ) {
        for number in self.blocks(offset, len) {
            if let Some(slot) = self.slot_of(file, number) {
                left(slot);
                self.remove(file, number);
                self.stats.excluded += 1;
            }
        }
    }

    /// Removes a block because its file has changed. Returns false if the block is not cached.
    pub(crate) fn remove(&mut self, file: FileId, number: u32) -> bool {
        let directory = self.directory.as_mut();
        directory.is_some_and(|directory| directory.remove(file, number))
    }

    /// Removes a block of a transient file because it is no longer needed. Returns false if the block is not cached.
    pub(crate) fn remove_delivered(&mut self, file: FileId, number: u32) -> bool {
        let was_there = self.remove(file, number);
        self.stats.delivered += u64::from(was_there);
        was_there
    }

    /// Returns an empty slot for the new content of the block that was just removed, and counts the update. Returns `None` if there is no
    /// content.
    pub(crate) fn update(&mut self, has_content: bool) -> Option<u32> {
        let directory = self.directory.as_mut().filter(|_| has_content);
        let slot = directory.and_then(Directory::take_slot);
        match slot {
            Some(_) => self.stats.updated += 1,
            None => self.stats.invalidated += 1,
        }
        slot.map(|(slot, _)| slot)
    }

    /// Records that a block was put into an empty slot.
    pub(crate) fn put(&mut self, slot: u32, block: Block) {
        self.stats.inserted_bytes += u64::from(block.bytes);
        if let Some(directory) = &mut self.directory {
            directory.put(slot, block);
        }
    }

    /// Counts content that is not sent from the cache.
    pub(crate) fn bypass(&mut self, reason: Bypass, len: u32) {
        self.stats.bypass(reason, len);
    }

    /// Discards the directory; the cache is unusable until it is started again.
    pub(crate) fn lose(&mut self) {
        self.stats.resets += u64::from(self.directory.take().is_some());
    }

    /// Starts an empty cache of `bytes` bytes.
    pub(crate) fn start(
        &mut self,
        bytes: u32,
        own: impl FnOnce(u32) -> Option<Box<dyn baton_cache::Replacement>>,
    ) {
        let blocks = bytes / self.config.block_bytes;
        let directory = Directory::new(&self.config, blocks, own(blocks));
        self.directory = (blocks > 0).then_some(directory);
    }
}

//! What is decided about content that is to be sent: whether it comes from the cache, and whether its block goes there.

use super::directory::{Block, Directory};
use super::{Bypass, Coherence, Freshness, NicCache, NicCacheStats};
use crate::sockets::FileId;

/// Content of a file that lies in one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) file: FileId,
    /// The block, and what of it comes before.
    pub(crate) number: u32,
    pub(crate) within: u32,
    pub(crate) len: u32,
    /// Revision of the file that is sent.
    pub(crate) revision: u32,
}

impl Content {
    /// Parts of one request share a block; the one with its first byte stands for the request.
    fn begins(&self) -> bool {
        self.within == 0
    }
}

/// What a look into the directory gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Content stands in this slot.
    Cached { slot: u32 },
    /// It does not. A block of its name that was of no use any more has left.
    Absent,
    /// It cannot come from the cache, where a newer block of its name stands.
    Bypassed,
}

impl NicCache {
    /// Whether the NIC has said how large its cache is, and it is of use.
    pub(crate) fn is_ready(&self) -> bool {
        self.directory.is_some()
    }

    /// What it did.
    pub(crate) fn stats(&self) -> &NicCacheStats {
        &self.stats
    }

    /// Blocks that it holds, and how many it may hold.
    pub(crate) fn len_and_capacity(&self) -> (u32, u32) {
        let directory = self.directory.as_ref();
        directory.map_or((0, 0), |directory| (directory.len(), directory.capacity()))
    }

    /// Where a block of a file stands, whatever its revision.
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

    /// What lies in one block of the `most` bytes at `offset` of a file; nothing beyond all numbers of blocks.
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

    /// Where the block of content begins in its file.
    pub(crate) fn start_of(&self, content: &Content) -> u64 {
        u64::from(content.number) * u64::from(self.config.block_bytes)
    }

    /// Where a slot begins in the cache.
    pub(crate) fn offset(&self, slot: u32) -> u32 {
        slot * self.config.block_bytes
    }

    /// Where content would be found, which is not counted as a look.
    pub(crate) fn place_of(&self, content: &Content, coherence: &dyn Coherence) -> Option<u32> {
        let directory = self.directory.as_ref()?;
        let (slot, block) = directory.find(content.file, content.number)?;
        let is_same = coherence.compare(block.since, content.revision) == Freshness::Same;
        let is_there = is_same && content.within + content.len <= block.bytes;
        is_there.then(|| self.offset(slot) + content.within)
    }

    /// Looks content up; nothing before the NIC has said how large its cache is.
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

    /// An empty slot for the block of content that was not found, which has `bytes`, if it is worth one.
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

    /// The blocks of a file that a change touches and that may be cached: of `len` bytes at `offset` or, without a length, from there on.
    pub(crate) fn changed_blocks(&self, file: FileId, offset: u64, len: Option<u64>) -> Vec<u32> {
        let first = *self.blocks(offset, 1).start();
        match (len, &self.directory) {
            (_, None) => Vec::new(),
            (Some(len), Some(_)) => self.blocks(offset, len).collect(),
            (None, Some(directory)) => directory.blocks_from(file, first),
        }
    }

    /// `len` bytes at `offset` of a file, at least one, have left main memory: their blocks leave, for the one includes the others
    /// (data-caching 4.2). `left` is told the slot of each.
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

    /// A block leaves, because its file has changed; false when it is not there.
    pub(crate) fn remove(&mut self, file: FileId, number: u32) -> bool {
        let directory = self.directory.as_mut();
        directory.is_some_and(|directory| directory.remove(file, number))
    }

    /// A block of a transient file leaves, because nobody needs it any more; false when it is not there.
    pub(crate) fn remove_delivered(&mut self, file: FileId, number: u32) -> bool {
        let was_there = self.remove(file, number);
        self.stats.delivered += u64::from(was_there);
        was_there
    }

    /// An empty slot for the block that has left last: what it is now goes there, which is counted. None where there is nothing to put
    /// there.
    pub(crate) fn update(&mut self, has_content: bool) -> Option<u32> {
        let directory = self.directory.as_mut().filter(|_| has_content);
        let slot = directory.and_then(Directory::take_slot);
        match slot {
            Some(_) => self.stats.updated += 1,
            None => self.stats.invalidated += 1,
        }
        slot.map(|(slot, _)| slot)
    }

    /// A block has been put into an empty slot.
    pub(crate) fn put(&mut self, slot: u32, block: Block) {
        self.stats.inserted_bytes += u64::from(block.bytes);
        if let Some(directory) = &mut self.directory {
            directory.put(slot, block);
        }
    }

    /// Content is not sent from the cache.
    pub(crate) fn bypass(&mut self, reason: Bypass, len: u32) {
        self.stats.bypass(reason, len);
    }

    /// The cache is of no use any more, until it is started again.
    pub(crate) fn lose(&mut self) {
        self.stats.resets += u64::from(self.directory.take().is_some());
    }

    /// A cache of so many bytes has been started, empty.
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

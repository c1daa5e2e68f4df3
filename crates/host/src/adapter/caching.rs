//! Sending from the adapter's data cache, which the host controls completely (data-caching 4.2).
//!
//! [`crate::nic_cache`] implements the directory, admission and replacement. The adapter carries out requests in order, so a queued SEND
//! refers to the block that was in its slot when it was queued: data is held back only as bytes, never as a reference.

mod changes;
mod sending;

use super::socket::Operation;
use super::{OsLayer, Request};
use crate::nic_cache::{Coherence, MakeReplacement, NicCache, NicCacheStats};
use crate::{FileContent, FileId, NicCacheConfig};
use baton_bus::descriptor::{self, Action, Response, Status};
use baton_bus::link::{Inline, Violation};
use baton_bus::{Chain, HostLink, Urgency};
use baton_cache::Replacement;
use baton_wire::{SeqNr, Time};
pub use changes::FileChange;
use rustc_hash::FxHashMap;

/// The host's state of the adapter's cache.
#[derive(Debug)]
pub(super) struct Caching {
    cache: NicCache,
    coherence: Box<dyn Coherence>,
    /// The caller's replacement policy; `None` if the parameters name one.
    replacement: Option<MakeReplacement>,
    /// Current revisions of the files whose changes the coherence protocol is notified of.
    revisions: FxHashMap<FileId, u32>,
    /// Whether CACHE INIT was requested on this link.
    operation: bool,
    /// CACHE INIT and INSERTs that wait for an answer.
    requests: Chain,
    /// Number of INSERTs requested, and how many of them were answered or lost.
    pub(super) inserts: SeqNr,
    pub(super) inserts_answered: SeqNr,
    /// Maximum number of waiting INSERTs.
    most_inserts: u32,
    /// Maximum number of bytes of the cache to use, even if the adapter offers more.
    most_bytes: u32,
}

/// Maximum number of blocks in the directory.
const MOST_BLOCKS: u32 = 1 << 20;

/// CACHE INIT and INSERTs belong to no socket.
const NOBODY: u32 = 0;

impl Caching {
    /// Returns `None` if `config` disables the cache.
    pub(super) fn new(config: &NicCacheConfig) -> Option<Box<Self>> {
        config.enabled.then(|| {
            Box::new(Self {
                cache: NicCache::new(config),
                coherence: config.coherence.build(),
                replacement: None,
                revisions: FxHashMap::default(),
                operation: false,
                requests: Chain::default(),
                inserts: SeqNr(0),
                inserts_answered: SeqNr(0),
                most_inserts: 0,
                most_bytes: config.block_bytes.saturating_mul(MOST_BLOCKS),
            })
        })
    }
}

impl<P: Inline> OsLayer<P> {
    /// Returns whether the adapter's data cache is used.
    pub fn has_cache(&self) -> bool {
        self.caching.is_some()
    }

    /// Returns the counters of the adapter's data cache, if it is used.
    pub fn nic_cache_stats(&self) -> Option<&NicCacheStats> {
        Some(self.caching.as_ref()?.cache.stats())
    }

    /// Returns how many blocks the adapter's cache holds, and how many it can hold.
    pub fn nic_cache_blocks(&self) -> (u32, u32) {
        let caching = self.caching.as_ref();
        caching.map_or((0, 0), |caching| caching.cache.len_and_capacity())
    }

    /// Returns the slot of a file's block in the adapter's cache, if the block is there.
    pub fn nic_cache_slot(&self, file: FileId, block: u32) -> Option<u32> {
        self.caching.as_ref()?.cache.slot_of(file, block)
    }

    /// Returns how many of the blocks of the first `len` bytes of content are in the adapter's cache, whatever their revision; looks at no
    /// more than the first `most`.
    pub fn count_cached(&self, content: &FileContent, len: u64, most: u32) -> u32 {
        let caching = self.caching.as_ref();
        caching.map_or(0, |caching| {
            let FileContent { file, offset, .. } = *content;
            caching.cache.count_cached(file, offset, len, most)
        })
    }

    /// Replaces the coherence protocol of the parameters by the caller's own, before anything is cached.
    pub fn set_coherence(&mut self, protocol: Box<dyn Coherence>) {
        if let Some(caching) = &mut self.caching {
            caching.coherence = protocol;
        }
    }

    /// Replaces the replacement policy of the parameters by the caller's own, before the cache is started. `make` creates a policy for a
    /// number of blocks.
    pub fn set_replacement(&mut self, make: impl Fn(u32) -> Box<dyn Replacement> + Send + 'static) {
        if let Some(caching) = &mut self.caching {
            caching.replacement = Some(MakeReplacement(Box::new(make)));
        }
    }

    /// Starts the adapter's cache, if it is enabled.
    pub(super) fn start_cache(&mut self, now: Time) {
        if self.queue.room() == 0 {
            return;
        }
        if let Some(caching) = &mut self.caching
            && !std::mem::replace(&mut caching.operation, true)
        {
            self.request_of_cache(now, Action::CacheInit, Operation::CacheInit, 0);
        }
    }

    /// Handles the loss of the adapter and its cache.
    pub(super) fn lose_cache(&mut self) {
        if let Some(caching) = &mut self.caching {
            self.requests.clear(&mut caching.requests);
            caching.cache.lose();
            caching.inserts_answered = caching.inserts;
            caching.operation = false;
        }
    }

    fn request_of_cache(
        &mut self,
        now: Time,
        action: Action,
        operation: Operation,
        data_bytes: u32,
    ) {
        let Some(caching) = &mut self.caching else {
            return;
        };
        self.stats.requests += 1;
        self.releasing += usize::from(operation.is_releasing());
        let socket = NOBODY;
        let tag = self
            .requests
            .push(&mut caching.requests, Request { socket, operation });
        let request = descriptor::Request {
            socket,
            tag,
            action,
        };
        let entry = [request.encode()];
        let pushed = self.queue.push(now, &entry, data_bytes, Urgency::Awaited);
        debug_assert!(pushed, "there was room");
    }

    /// Handles the answer to CACHE INIT.
    pub(super) fn handle_cache_ready(
        &mut self,
        response: &Response,
        bytes: u32,
        most_inserts: u32,
    ) -> Result<(), Violation> {
        let (operation, unrequested) = self.operation_of(response)?;
        if operation != Operation::CacheInit {
            return Err(unrequested);
        }
        self.completed_of_cache(response.tag, operation);
        if let Some(caching) = &mut self.caching
            && response.status == Status::Ok
        {
            let replacement = caching.replacement.as_ref();
            let bytes = bytes.min(caching.most_bytes);
            (caching.cache).start(bytes, |blocks| replacement.map(|make| make.0(blocks)));
            caching.most_inserts = most_inserts;
        }
        Ok(())
    }

    /// Called when the adapter has fetched a block, or has refused to; after a refusal, the cache is no longer used.
    pub(super) fn handle_inserted<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        (operation, address): (Operation, u64),
    ) {
        self.completed_of_cache(response.tag, operation);
        self.free_placed(link, address);
        if let Some(caching) = &mut self.caching {
            caching.inserts_answered += 1;
            if response.status != Status::Ok {
                caching.cache.lose();
            }
        }
    }

    fn completed_of_cache(&mut self, tag: u32, operation: Operation) {
        if let Some(caching) = &mut self.caching {
            let removed = self.requests.remove(&mut caching.requests, tag);
            debug_assert!(removed.is_some(), "a request is in its queue");
        }
        self.released(operation);
    }

    /// Returns the number of the cache's requests, and of those with a buffer.
    pub(super) fn check_cache(&self) -> (usize, usize) {
        let Some(caching) = &self.caching else {
            return (0, 0);
        };
        caching.cache.check();
        self.requests.check(&caching.requests);
        let requests = self.requests.iter(&caching.requests);
        let inserts = requests
            .filter(|one| matches!(one.operation, Operation::Insert { .. }))
            .count();
        (caching.requests.len() as usize, inserts)
    }
}

//! Sending from the adapter's data cache: the host decides everything (data-caching 4.2).
//!
//! The directory, what is admitted and what makes room are those of [`crate::nic_cache`]. Requests are carried out in order, so that a
//! SEND that was queued means the block that was in its place then: nothing is held back by name, only as data.

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

/// What the host knows of the adapter's cache.
#[derive(Debug)]
pub(super) struct Caching {
    cache: NicCache,
    coherence: Box<dyn Coherence>,
    /// None: as its parameters say.
    replacement: Option<MakeReplacement>,
    /// Present revisions of the files of whose changes the protocol is told.
    revisions: FxHashMap<FileId, u32>,
    /// CACHE INIT has been asked for on this link.
    operation: bool,
    /// CACHE INIT and INSERTs that wait to be answered.
    requests: Chain,
    /// INSERTs that were asked for, and how many of them were answered or lost.
    pub(super) inserts: SeqNr,
    pub(super) inserts_answered: SeqNr,
    /// INSERTs that may.
    most_inserts: u32,
    /// As much of the cache is used at most, whatever the adapter says that it has.
    most_bytes: u32,
}

/// Blocks that the directory has at most.
const MOST_BLOCKS: u32 = 1 << 20;

/// CACHE INIT and INSERTs are of no socket.
const NOBODY: u32 = 0;

impl Caching {
    /// None if `config` says so.
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
    /// Whether the adapter's data cache is used.
    pub fn has_cache(&self) -> bool {
        self.caching.is_some()
    }

    /// What the adapter's data cache did; nothing where none is used.
    pub fn nic_cache_stats(&self) -> Option<&NicCacheStats> {
        Some(self.caching.as_ref()?.cache.stats())
    }

    /// Blocks that the adapter's cache holds, and how many it may hold.
    pub fn nic_cache_blocks(&self) -> (u32, u32) {
        let caching = self.caching.as_ref();
        caching.map_or((0, 0), |caching| caching.cache.len_and_capacity())
    }

    /// The place in the adapter's cache of a block of a file, by the numbers of both, if it has one.
    pub fn nic_cache_slot(&self, file: FileId, block: u32) -> Option<u32> {
        self.caching.as_ref()?.cache.slot_of(file, block)
    }

    /// How many of the first `most` blocks that the first `len` bytes of content lie in are in the adapter's cache, whatever their revision.
    pub fn count_cached(&self, content: &FileContent, len: u64, most: u32) -> u32 {
        let caching = self.caching.as_ref();
        caching.map_or(0, |caching| {
            let FileContent { file, offset, .. } = *content;
            caching.cache.count_cached(file, offset, len, most)
        })
    }

    /// A coherence protocol of the caller's own in place of the one that its parameters name, before anything is cached.
    pub fn set_coherence(&mut self, protocol: Box<dyn Coherence>) {
        if let Some(caching) = &mut self.caching {
            caching.coherence = protocol;
        }
    }

    /// What chooses the block that makes room in the adapter's cache, made for so many blocks, in place of what its parameters name;
    /// before the cache is started.
    pub fn set_replacement(&mut self, make: impl Fn(u32) -> Box<dyn Replacement> + Send + 'static) {
        if let Some(caching) = &mut self.caching {
            caching.replacement = Some(MakeReplacement(Box::new(make)));
        }
    }

    /// Starts the adapter's cache, if it is to be used.
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

    /// The adapter and its cache are gone.
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

    /// CACHE INIT has been answered.
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

    /// The adapter has fetched a block, or will not: then nothing more is sent from there.
    pub(super) fn handle_inserted<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        (operation, address): (Operation, u64),
    ) {
        self.completed_of_cache(response.tag, operation);
        self.free_sent(link, Some(address));
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

    /// Counts its requests: all of them, and those with a buffer.
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

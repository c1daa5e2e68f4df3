//! The data cache of a session (data-caching 4.1 and 4.3): CACHE INIT, INSERT, and SENDs from the cache.
//!
//! The host alone decides what the cache holds. Fetching takes time, but requests take effect in the order in which they arrive: a SEND
//! refers to the block that was in the cache when the SEND arrived, and waits for its data if that is still being fetched.

use super::dma::Job;
use super::sending::{Send, SendData};
use super::session::{Session, Work};
use crate::blocks::{Block, Blocks, References};
use baton_bus::descriptor::CACHE_UNIT_BYTES;
use baton_bus::descriptor::{Opcode, Outcome, Status};
use baton_bus::link::Inline;
use baton_wire::Payload;
use std::collections::VecDeque;
use std::sync::Arc;

/// The cache of one session.
#[derive(Debug)]
pub(super) struct Cache<P> {
    /// `None` until the host has requested a cache.
    blocks: Option<Blocks<P>>,
    /// INSERTs whose data is being fetched, oldest first. Their numbers are consecutive.
    inserts: VecDeque<Insert<P>>,
    next_insert: u64,
}

/// An INSERT whose data is being fetched.
#[derive(Debug)]
struct Insert<P> {
    /// Socket number for the answer.
    number: u32,
    tag: u32,
    block: Arc<Block<P>>,
    /// Slots of sockets whose next SEND waits for this INSERT. A slot may have been reused for another socket by then.
    waiting: Vec<u32>,
}

/// Parameters of an INSERT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) tag: u32,
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) offset: u32,
}

impl<P: Payload + Inline> Cache<P> {
    pub(super) fn new() -> Self {
        Self {
            blocks: None,
            inserts: VecDeque::new(),
            next_insert: 0,
        }
    }

    /// Returns the number of INSERTs whose data is being fetched.
    pub(super) fn inserts(&self) -> usize {
        self.inserts.len()
    }

    /// Returns the size of the cache and the number of bytes it holds.
    pub(super) fn bytes(&self) -> (u32, u32) {
        let blocks = self.blocks.as_ref();
        blocks.map_or((0, 0), |blocks| (blocks.bytes(), blocks.used()))
    }

    /// Returns the blocks if the range lies within the cache.
    fn blocks(&mut self, offset: u32, len: u32) -> Result<&mut Blocks<P>, Status> {
        let blocks = self.blocks.as_mut().ok_or(Status::NoCache)?;
        match blocks.admits(offset, len) {
            true => Ok(blocks),
            false => Err(Status::OutsideCache),
        }
    }

    /// Returns references to the contents of a range.
    fn refer(&mut self, offset: u32, len: u32) -> Result<References<P>, Status> {
        if len == 0 {
            return Err(Status::BadValue);
        }
        let found = self.blocks(offset, len)?.refer(offset, len);
        found.ok_or(Status::NotCached)
    }

    /// Returns whether all parts have been fetched. If not, registers the socket in `slot` to continue when they have. `waits_for` is the
    /// last INSERT for which the socket is registered; earlier INSERTs have completed by then.
    pub(super) fn is_here(
        &mut self,
        parts: &References<P>,
        slot: u32,
        waits_for: &mut Option<u64>,
    ) -> bool {
        let Some(awaited) = parts.iter().filter_map(|part| part.awaits()).max() else {
            return true;
        };
        if waits_for.is_some_and(|insert| insert >= awaited) {
            return false;
        }
        let behind = (self.next_insert - awaited) as usize;
        let index = self.inserts.len().checked_sub(behind);
        let insert = index.and_then(|index| self.inserts.get_mut(index));
        debug_assert!(insert.is_some(), "missing data is being fetched");
        if let Some(insert) = insert {
            *waits_for = Some(awaited);
            insert.waiting.push(slot);
        }
        false
    }

    pub(super) fn check(&self) {
        if let Some(blocks) = &self.blocks {
            blocks.check();
        }
        assert!(self.inserts.len() as u64 <= self.next_insert);
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes CACHE INIT. Operations in progress on the old cache complete as usual.
    pub(super) fn cache_init(&mut self, work: &Work<'_, P>, number: u32, tag: u32) {
        let config = &work.shared.config;
        let bytes = config.cache_bytes;
        self.cache.blocks = (bytes > 0).then(|| Blocks::new(bytes));
        let outcome = Outcome::CacheReady {
            bytes,
            most_inserts: config.most_inserts,
        };
        self.respond(work.now, number, tag, Status::Ok, outcome);
    }

    /// Executes INSERT, which is answered when the data has been fetched.
    pub(super) fn cache_insert(
        &mut self,
        work: &Work<'_, P>,
        number: u32,
        place: Place,
    ) -> Result<(), Status> {
        let Place {
            tag,
            address,
            len,
            offset,
        } = place;
        if len == 0 || !offset.is_multiple_of(CACHE_UNIT_BYTES) {
            return Err(Status::BadValue);
        }
        let cache = &mut self.cache;
        if cache.inserts.len() >= work.shared.config.most_inserts as usize {
            return Err(Status::TooManyRequests);
        }
        let insert = cache.next_insert;
        let block = cache.blocks(offset, len)?.insert(offset, len, insert);
        cache.next_insert += 1;
        cache.inserts.push_back(Insert {
            number,
            tag,
            block,
            waiting: Vec::new(),
        });
        self.ask_read(Job::Insert { len }, address, len);
        Ok(())
    }

    /// Stores the data of the oldest INSERT in progress.
    pub(super) fn inserted(&mut self, work: &mut Work<'_, P>, data: P) {
        let Some(insert) = self.cache.inserts.pop_front() else {
            return debug_assert!(false, "an INSERT is being fetched");
        };
        self.stats.cache_inserts += 1;
        self.stats.cache_inserted_bytes += data.len() as u64;
        insert.block.fill(data);
        let done = Outcome::Done(Opcode::CacheInsert);
        self.respond(work.now, insert.number, insert.tag, Status::Ok, done);
        for slot in insert.waiting {
            if self.sockets.contains(slot as usize) {
                self.feed(work, slot);
                self.leave_when_quiet(work, slot);
            }
        }
    }

    /// Executes a SEND from the cache, in order with the other SENDs of the socket.
    pub(super) fn send_cached(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        (offset, len): (u32, u32),
        more: bool,
    ) -> Result<(), Status> {
        let parts = self.cache.refer(offset, len)?;
        self.send(work, slot, Send::new(tag, SendData::Cached(parts), more))?;
        self.stats.cache_sends += 1;
        self.stats.cache_sent_bytes += u64::from(len);
        Ok(())
    }
}

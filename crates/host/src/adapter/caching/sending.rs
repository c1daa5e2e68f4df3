//! SENDs from the cache, and the INSERTs that they cause (data-caching 4.3).

use super::super::OsLayer;
use super::super::socket::{Operation, Phase};
use crate::nic_cache::{Block, Bypass, Content, Found};
use crate::{FileContent, FromCache, Gone, SocketId};
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, MOST_BLOCKS_SENT};
use baton_bus::link::Inline;
use baton_wire::Time;

impl<P: Inline> OsLayer<P> {
    /// Sends the beginning of `content`, as far as it is in the cache.
    pub(in crate::adapter) fn send_cached<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        content: &FileContent,
    ) -> Result<FromCache, Gone> {
        let mut done = FromCache::NOTHING;
        if !self.may_send_cached(socket)? {
            return Ok(done);
        }
        while done.taken < content.len {
            let part = self.part(content, done.taken, content.len - done.taken);
            let Some(part) = part.filter(|part| self.place_of(part).is_some()) else {
                break;
            };
            if !self.has_room_for_reference(now, link, socket.0) {
                done.has_room = false;
                break;
            }
            let Some(at) = self.find(&part) else { break };
            let rest = content.after(done.taken);
            let len = self.find_behind(at, &part, &rest, rest.len);
            done.taken += u64::from(len);
            let more = done.taken < content.len;
            self.queue_cached(now, socket.0, (at, len), more);
        }
        Ok(done)
    }

    /// Sends `data`, the beginning of `content`: parts that are in the cache or are inserted now by reference, the rest as bytes.
    pub(in crate::adapter) fn send_file<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        content: &FileContent,
        data: &P,
    ) -> Result<usize, Gone> {
        if !self.may_send_cached(socket)? {
            return self.send(now, link, socket, data);
        }
        // Offset up to which `data` was handled, and the number of bytes before it that are not in the cache and still to be sent.
        let (mut at, mut plain) = (0, 0);
        while at < data.len() {
            let Some(part) = self.part(content, at as u64, (data.len() - at) as u64) else {
                return self.send(now, link, socket, &data.slice(at, data.len() - at));
            };
            if !self.has_room(link, socket.0) {
                break;
            }
            let most = u64::from(self.config.nic_cache.block_bytes);
            let whole = |start| at_hand(content, data, start, most);
            let Some(place) = self.find_or_insert(now, link, &part, 1, whole) else {
                plain += part.len as usize;
                at += part.len as usize;
                continue;
            };
            let sent = self.send_plain(now, link, socket, data.slice(at - plain, plain))?;
            if sent < plain || !self.has_room_for_reference(now, link, socket.0) {
                return Ok(at - plain + sent);
            }
            plain = 0;
            let (rest, most) = (content.after(at as u64), data.len() - at);
            let len = self.find_behind(place, &part, &rest, most as u64);
            at += len as usize;
            let more = (at as u64) < content.len;
            self.queue_cached(now, socket.0, (place, len), more);
        }
        let sent = self.send_plain(now, link, socket, data.slice(at - plain, plain))?;
        let taken = at - plain + sent;
        // If buffer space was missing, the rest waits for it.
        let waits = taken < data.len();
        self.socket_mut(socket.0).wants_room = waits;
        if waits && sent == plain && self.has_room_for_reference(now, link, socket.0) {
            self.wake_writer(socket.0);
        }
        Ok(taken)
    }

    fn send_plain<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        data: P,
    ) -> Result<usize, Gone> {
        match data.is_empty() {
            true => Ok(0),
            false => self.send(now, link, socket, &data),
        }
    }

    /// Returns whether data of a socket can be sent from the cache at all.
    fn may_send_cached(&self, socket: SocketId) -> Result<bool, Gone> {
        let entry = self.known(socket).ok_or(Gone)?;
        if !entry.may_send() {
            return Err(Gone);
        }
        let is_ready = (self.caching.as_ref()).is_some_and(|caching| caching.cache.is_ready());
        Ok(is_ready && entry.phase == Phase::Open)
    }

    /// Returns the part of content from `from` on that lies within one block.
    pub(in crate::adapter) fn part(
        &self,
        content: &FileContent,
        from: u64,
        most: u64,
    ) -> Option<Content> {
        let cache = &self.caching.as_ref()?.cache;
        cache.content(content.file, content.revision, content.offset + from, most)
    }

    /// Looks content up in the cache and returns its offset there.
    fn find(&mut self, part: &Content) -> Option<u32> {
        let caching = self.caching.as_mut()?;
        let found = caching.cache.look_up(part, caching.coherence.as_ref())?;
        match found {
            Found::Cached { slot } => Some(caching.cache.offset(slot) + part.within),
            Found::Absent | Found::Bypassed => None,
        }
    }

    /// Returns the offset of content in the cache without counting a lookup.
    fn place_of(&self, part: &Content) -> Option<u32> {
        let caching = self.caching.as_ref()?;
        caching.cache.place_of(part, caching.coherence.as_ref())
    }

    /// Extends `part`, which is the beginning of `content` and is at offset `at` of the cache, by the following content that is right
    /// behind it in the cache. Returns the length of both together, at most `most`.
    fn find_behind(&mut self, at: u32, part: &Content, content: &FileContent, most: u64) -> u32 {
        let mut len = part.len;
        for _ in 1..MOST_BLOCKS_SENT {
            let next = match most - u64::from(len) {
                0 => None,
                left => self.part(content, len.into(), left),
            };
            let Some(next) = next.filter(|next| self.place_of(next) == Some(at + len)) else {
                break;
            };
            self.find(&next);
            len += next.len;
        }
        len
    }

    /// Returns the offset of content in the cache. If its block is not there, it may be inserted now, if `block` returns the whole block:
    /// from this byte of the file on, at most a block. Afterwards there must still be space for this many SENDs.
    pub(in crate::adapter) fn find_or_insert<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        part: &Content,
        sends: usize,
        block: impl FnOnce(u64) -> Result<P, Bypass>,
    ) -> Option<u32> {
        let caching = self.caching.as_mut()?;
        let coherence = caching.coherence.as_ref();
        match caching.cache.look_up(part, coherence)? {
            Found::Cached { slot } => Some(caching.cache.offset(slot) + part.within),
            Found::Bypassed => None,
            Found::Absent => match self.insert(now, link, part, sends, block) {
                Ok(offset) => Some(offset + part.within),
                Err(reason) => {
                    let caching = self.caching.as_mut()?;
                    caching.cache.bypass(reason, part.len);
                    None
                }
            },
        }
    }

    fn insert<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        part: &Content,
        sends: usize,
        block: impl FnOnce(u64) -> Result<P, Bypass>,
    ) -> Result<u32, Bypass> {
        let caching = self.caching.as_mut().ok_or(Bypass::NotReady)?;
        // A protocol that is notified of changes does not check again whether a block has an old revision.
        let present = caching.revisions.get(&part.file);
        if present.is_some_and(|&present| part.revision < present) {
            return Err(Bypass::OldRevision);
        }
        let data = block(caching.cache.start_of(part))?;
        let len = data.len() as u32;
        if len < part.within + part.len {
            return Err(Bypass::NotResident);
        }
        if !self.may_insert(link, len, sends) {
            return Err(Bypass::NoRoom);
        }
        let caching = self.caching.as_mut().ok_or(Bypass::NotReady)?;
        let slot = caching.cache.make_place(part, len)?;
        Ok(self.fill(now, link, slot, part, data))
    }

    /// Returns whether there is space for an INSERT of `len` bytes and `sends` SENDs, including a buffer for each.
    pub(super) fn may_insert<L: HostLink<Data = P>>(
        &self,
        link: &L,
        len: u32,
        sends: usize,
    ) -> bool {
        let is_idle = (self.caching.as_ref())
            .is_some_and(|caching| caching.requests.len() < caching.most_inserts);
        let has_room = self.queue.room() > sends && self.spare(link) > sends;
        is_idle && has_room && len <= link.buffer_bytes()
    }

    /// Inserts the block of some content into an empty slot; the caller has checked for space. Returns the block's offset in the cache.
    pub(super) fn fill<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        slot: u32,
        part: &Content,
        data: P,
    ) -> u32 {
        let len = data.len() as u32;
        let Ok(address) = link.place(data) else {
            unreachable!("a buffer is free and long enough");
        };
        self.placed += 1;
        let Some(caching) = &mut self.caching else {
            unreachable!("the slot is one of a cache's");
        };
        let block = Block {
            file: part.file,
            number: part.number,
            since: part.revision,
            bytes: len,
        };
        caching.cache.put(slot, block);
        caching.inserts += 1;
        let offset = caching.cache.offset(slot);
        let action = Action::CacheInsert {
            address,
            len,
            offset,
        };
        self.request_of_cache(now, action, Operation::Insert { address }, len);
        offset
    }

    /// Returns whether there is space for a SEND by reference.
    fn has_room<L: HostLink<Data = P>>(&mut self, link: &L, number: u32) -> bool {
        // A SEND by reference takes no buffer, like one without data.
        self.no_room(link, number, 0).is_none()
    }

    /// Sends all data that is held back, and then works like `has_room`. If there is no space, the socket becomes writable later.
    pub(in crate::adapter) fn has_room_for_reference<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
    ) -> bool {
        if self.flush(now, link, number, true).is_ok() {
            let Some(why) = self.no_room(link, number, 0) else {
                return true;
            };
            self.stats.no_room.count(why);
            self.wait_for_room(number, why);
        }
        self.socket_mut(number).wants_room = true;
        false
    }

    /// Queues a SEND of data at `offset` of the cache; the caller has checked for space.
    pub(in crate::adapter) fn queue_cached(
        &mut self,
        now: Time,
        number: u32,
        (offset, len): (u32, u32),
        more: bool,
    ) {
        let action = Action::SendCached { offset, len, more };
        self.queue_reference(now, number, (None, len), action);
        self.stats.cached_sends += 1;
        self.stats.cached_bytes += u64::from(len);
    }
}

/// Returns a block of at most `most` bytes from `start` of a file, if all of it is within `data`, the beginning of `content`.
fn at_hand<P: Inline>(content: &FileContent, data: &P, start: u64, most: u64) -> Result<P, Bypass> {
    let from = start.checked_sub(content.offset);
    let from = from.ok_or(Bypass::NotResident)? as usize;
    let len = content.file_len.saturating_sub(start).min(most) as usize;
    match from + len <= data.len() {
        true => Ok(data.slice(from, len)),
        false => Err(Bypass::NotResident),
    }
}

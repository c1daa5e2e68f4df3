//! SENDs from the cache, and the INSERTs that come of them (data-caching 4.3).

use super::super::OsLayer;
use super::super::socket::{Operation, Phase};
use crate::nic_cache::{Block, Bypass, Content, Found};
use crate::{FileContent, FromCache, Gone, SocketId};
use baton_bus::descriptor::{Action, MOST_BLOCKS_SENT, Request};
use baton_bus::link::Inline;
use baton_bus::{HostLink, Urgency};
use baton_wire::Time;

impl<P: Inline> OsLayer<P> {
    /// Sends what of `content` stands in the cache, from its start on.
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

    /// Sends `data`, with which `content` begins: by reference what stands in the cache or goes there now, the rest as it is.
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
        // What is sent up to, and what of it is not in the cache and still to be sent.
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
        // What comes next waits for room, if there has been none.
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

    /// Whether a socket's data can come from the cache at all.
    fn may_send_cached(&self, socket: SocketId) -> Result<bool, Gone> {
        let entry = self.known(socket).ok_or(Gone)?;
        if !entry.may_send() {
            return Err(Gone);
        }
        let is_ready = (self.caching.as_ref()).is_some_and(|caching| caching.cache.is_ready());
        Ok(is_ready && entry.phase == Phase::Open)
    }

    /// What of content lies in one block, from `from` on.
    pub(in crate::adapter) fn part(
        &self,
        content: &FileContent,
        from: u64,
        most: u64,
    ) -> Option<Content> {
        let cache = &self.caching.as_ref()?.cache;
        cache.content(content.file, content.revision, content.offset + from, most)
    }

    /// Where content stands in the cache, as far as it is known to be there.
    fn find(&mut self, part: &Content) -> Option<u32> {
        let caching = self.caching.as_mut()?;
        let found = caching.cache.look_up(part, caching.coherence.as_ref())?;
        match found {
            Found::Cached { slot } => Some(caching.cache.offset(slot) + part.within),
            Found::Absent | Found::Bypassed => None,
        }
    }

    /// Where content would be found, which is not counted as a look.
    fn place_of(&self, part: &Content) -> Option<u32> {
        let caching = self.caching.as_ref()?;
        caching.cache.place_of(part, caching.coherence.as_ref())
    }

    /// Finds what follows `part`, with which `content` begins and which stands at `at`, as far as it stands right behind; gives how much
    /// of the first `most` bytes of `content` that is with the part.
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

    /// Where content stands in the cache; the block of what is not there may be put there now, if `block` gives all of it: from this byte
    /// of the file on, at most a block. So many SENDs are to find room after that.
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
        // Who is told of changes does not look again whether a block is of an old revision.
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

    /// Whether there is room for an INSERT of so many bytes and so many SENDs as well, and buffers for the others.
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

    /// Puts the block of some content into an empty slot, for which there is room; gives where it begins in the cache.
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

    /// Whether a SEND of a reference finds room.
    fn has_room<L: HostLink<Data = P>>(&mut self, link: &L, number: u32) -> bool {
        // As that of nothing: it takes no buffer.
        self.no_room(link, number, 0).is_none()
    }

    /// The same once all that is held back has gone, which it follows; if not, the socket becomes writable later.
    fn has_room_for_reference<L: HostLink<Data = P>>(
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

    /// Queues a SEND of what stands at `offset` of the cache; there is room for it.
    pub(in crate::adapter) fn queue_cached(
        &mut self,
        now: Time,
        number: u32,
        (offset, len): (u32, u32),
        more: bool,
    ) {
        let address = None;
        let end = self.give(number, len);
        let tag = self.remember(number, Operation::Send { address, len, end });
        let request = Request {
            socket: number,
            tag,
            action: Action::SendCached { offset, len, more },
        };
        let entry = [request.encode()];
        let pushed = self.queue.push(now, &entry, len, Urgency::Awaited);
        debug_assert!(pushed, "there was room");
        self.stats.sends += 1;
        self.stats.cached_sends += 1;
        self.stats.sent_bytes += u64::from(len);
        self.stats.cached_bytes += u64::from(len);
    }
}

/// A block of at most `most` bytes from `start` of a file on, if all of it is part of `data`, with which `content` begins.
fn at_hand<P: Inline>(content: &FileContent, data: &P, start: u64, most: u64) -> Result<P, Bypass> {
    let from = start.checked_sub(content.offset);
    let from = from.ok_or(Bypass::NotResident)? as usize;
    let len = content.file_len.saturating_sub(start).min(most) as usize;
    match from + len <= data.len() {
        true => Ok(data.slice(from, len)),
        false => Err(Bypass::NotResident),
    }
}

//! Looking content up in a NIC's directory, putting it into the cache, and keeping the two in step with the files.

use super::choice::{Content, Found};
use super::directory::{Block, Directory};
use super::{Bypass, NicCache, OnChange};
use crate::files::FilePage;
use crate::footprint::{self, PAGE_BYTES};
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::nics::NicId;
use crate::socket::{SendBuffer, Storage};
use crate::sockets::{FileId, SocketId};
use baton_bus::handoff::{CacheCommand, CacheReference};
use baton_wire::Payload;
use smallvec::SmallVec;

/// A part of what is sent, and where it stands in the cache, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) len: u32,
    pub(crate) cached: Option<CacheReference>,
}

/// What is sent at one time, part by part.
pub(crate) type Parts = SmallVec<[Part; 4]>;

impl<P: Payload> Kernel<P> {
    /// Cuts `len` bytes of a send buffer, from `position` of all that was ever put there, into parts; looks up each that is content
    /// of a file, and may put its block into the cache.
    pub(crate) fn locate<M: Meter>(
        &mut self,
        nic: NicId,
        id: SocketId,
        position: u64,
        len: u32,
        m: &mut M,
    ) -> Parts {
        let mut parts = Parts::new();
        // It is put back below: meanwhile it and the rest of the kernel can be changed side by side.
        let Some(mut cache) = self.nics[nic].cache.take() else {
            return parts;
        };
        let block_bytes = cache.config.block_bytes;
        let mut at = position;
        let end = position + u64::from(len);
        let buffers = &self.sockets[id].send_buffers;
        let mut index = buffers.partition_point(|buffer| buffer.end() <= at);
        while at < end {
            let buffer = self.sockets[id].send_buffers[index];
            let left = (buffer.end().min(end) - at) as u32;
            let (len, cached) = match buffer.storage {
                Storage::File(page) => {
                    let (number, within) = cache.block_at(page.offset((at - buffer.at) as u32));
                    let content = Content {
                        file: page.file,
                        number,
                        within,
                        len: left.min(block_bytes - within),
                        revision: page.revision,
                    };
                    let cached = self.find_or_insert(nic, &mut cache, content, &parts, m);
                    (content.len, cached)
                }
                Storage::Internal | Storage::Cluster(_) | Storage::Page(_) => (left, None),
            };
            parts.push(Part { len, cached });
            at += u64::from(len);
            index += usize::from(at == buffer.end());
        }
        self.nics[nic].cache = Some(cache);
        parts
    }

    /// Where content stands in the cache; it may be put there now.
    fn find_or_insert<M: Meter>(
        &mut self,
        nic: NicId,
        cache: &mut NicCache,
        content: Content,
        parts: &Parts,
        m: &mut M,
    ) -> Option<CacheReference> {
        let block_bytes = cache.config.block_bytes;
        let Content {
            file,
            number,
            within,
            ..
        } = content;
        let used = |slot: u32| refers(parts, slot, block_bytes);
        let found = cache.look_up(&content, self.coherence.as_ref(), used)?;
        footprint::directory_lookup(m, nic, file.0 ^ number, found.slot());
        match found {
            Found::Cached { slot, generation } => {
                return Some(reference(slot, within, block_bytes, generation));
            }
            Found::Bypassed { .. } => return None,
            Found::Absent { left: Some(slot) } => footprint::directory_remove(m, nic, slot),
            Found::Absent { left: None } => {}
        }
        match self.insert(nic, cache, content, parts, m) {
            Ok((slot, generation)) => Some(reference(slot, within, block_bytes, generation)),
            Err(reason) => {
                cache.stats.bypass(reason, content.len);
                None
            }
        }
    }

    /// Puts the whole block of some content into the cache; gives its slot and the number of the insert.
    fn insert<M: Meter>(
        &mut self,
        nic: NicId,
        cache: &mut NicCache,
        content: Content,
        parts: &Parts,
        m: &mut M,
    ) -> Result<(u32, u32), Bypass> {
        let Content {
            file,
            number,
            revision,
            ..
        } = content;
        let block_bytes = cache.config.block_bytes;
        if revision != self.files.revision(file) {
            return Err(Bypass::OldRevision);
        }
        let start = u64::from(number) * u64::from(block_bytes);
        let asked = start + u64::from(content.within + content.len);
        let bytes = self.bytes_of_block(file, number, block_bytes, asked);
        if start + u64::from(bytes) < asked || !self.files.resident(file, start, bytes) {
            return Err(Bypass::NotResident);
        }
        let used = |slot: u32| refers(parts, slot, block_bytes);
        let slot = cache.make_place(&content, bytes, used)?;
        let block = Block {
            file,
            number,
            since: revision,
            bytes,
            generation: 0,
        };
        Ok((slot, self.fill(nic, cache, slot, block, m)))
    }

    /// How long a block is, when its file reaches at least to `asked`.
    fn bytes_of_block(&mut self, file: FileId, number: u32, block_bytes: u32, asked: u64) -> u32 {
        let start = u64::from(number) * u64::from(block_bytes);
        let store = self.files.store.as_mut();
        let file_len = store.map_or(0, |store| store.len(file, asked));
        file_len.saturating_sub(start).min(u64::from(block_bytes)) as u32
    }

    /// Fills an empty slot with a block as it is now; gives the number of the insert. Pages of main memory lie anywhere, so that each
    /// needs a command of its own (data-caching 4.3).
    fn fill<M: Meter>(
        &mut self,
        nic: NicId,
        cache: &mut NicCache,
        slot: u32,
        mut block: Block,
        m: &mut M,
    ) -> u32 {
        let block_bytes = cache.config.block_bytes;
        block.generation = cache.next_generation();
        let start = u64::from(block.number) * u64::from(block_bytes);
        footprint::directory_insert(m, nic, slot);
        let (mut done, mut commands) = (0, 0);
        while done < block.bytes {
            let at = start + u64::from(done);
            let in_page = PAGE_BYTES - (at % u64::from(PAGE_BYTES)) as u32;
            let run = in_page.min(block.bytes - done);
            let Some(store) = &self.files.store else {
                break;
            };
            let data = store.read(block.file, at, run);
            let entry = self.nics[nic].driver.command_entry();
            footprint::driver_command(m, entry);
            self.post_cache(
                nic,
                CacheCommand::Insert {
                    data,
                    offset: slot * block_bytes + done,
                    generation: block.generation,
                },
            );
            done += run;
            commands += 1;
        }
        cache.put(slot, block, commands);
        block.generation
    }

    // --- what follows from changes elsewhere ---

    /// A page has left main memory: its blocks leave all caches.
    pub(crate) fn drop_blocks_of_page<M: Meter>(&mut self, file: FileId, number: u32, m: &mut M) {
        let offset = u64::from(number) * u64::from(PAGE_BYTES);
        for nic in self.nics() {
            if let Some(cache) = self.nics[nic].cache.as_deref_mut() {
                cache.exclude(file, offset, u64::from(PAGE_BYTES), |slot| {
                    footprint::directory_remove(m, nic, slot);
                });
            }
        }
    }

    /// `len` bytes at `offset` of a file were changed; `None`: the file ends at `offset` now.
    pub(crate) fn file_changed<M: Meter>(
        &mut self,
        file: FileId,
        offset: u64,
        len: Option<u64>,
        m: &mut M,
    ) {
        let on_change = self.coherence.on_change();
        if on_change == OnChange::Leave {
            return;
        }
        for nic in self.nics() {
            let Some(mut cache) = self.nics[nic].cache.take() else {
                continue;
            };
            let numbers = cache.changed_blocks(file, offset, len);
            for number in numbers {
                self.block_changed(nic, &mut cache, file, number, on_change, m);
            }
            self.nics[nic].cache = Some(cache);
        }
    }

    fn block_changed<M: Meter>(
        &mut self,
        nic: NicId,
        cache: &mut NicCache,
        file: FileId,
        number: u32,
        on_change: OnChange,
        m: &mut M,
    ) {
        let block_bytes = cache.config.block_bytes;
        let Some(directory) = &mut cache.directory else {
            return;
        };
        if !remove(nic, directory, file, number, m) {
            return;
        }
        let bytes = self.bytes_of_block(file, number, block_bytes, 0);
        let start = u64::from(number) * u64::from(block_bytes);
        let stays =
            on_change == OnChange::Update && bytes > 0 && self.files.resident(file, start, bytes);
        let Some(slot) = cache.update(stays) else {
            return;
        };
        let block = Block {
            file,
            number,
            since: self.files.revision(file),
            bytes,
            generation: 0,
        };
        self.fill(nic, cache, slot, block, m);
    }

    // --- transient files ---

    /// A run of a page goes into a send buffer: if its file is transient its blocks are referred to once more.
    pub(crate) fn refer_to_blocks(&mut self, id: SocketId, page: FilePage, len: u32) {
        if self.files.transient.is_empty() || !self.files.transient.contains(&page.file) {
            return;
        }
        let nic = self.sockets[id].out;
        if let Some(cache) = self.nics[nic].cache.as_deref_mut() {
            for number in cache.blocks(page.offset(0), u64::from(len)) {
                *cache.references.entry((page.file, number)).or_insert(0) += 1;
            }
        }
    }

    /// A run of a page was acknowledged as a whole. With the last reference to a block of a transient file the block goes.
    pub(crate) fn release_blocks<M: Meter>(
        &mut self,
        id: SocketId,
        page: FilePage,
        buffer: &SendBuffer,
        m: &mut M,
    ) {
        if self.files.transient.is_empty() {
            return;
        }
        let nic = self.sockets[id].out;
        let Some(cache) = self.nics[nic].cache.as_deref_mut() else {
            return;
        };
        let len = u64::from(buffer.skipped + buffer.len);
        for number in cache.blocks(page.offset(0), len) {
            let key = (page.file, number);
            let Some(references) = cache.references.get_mut(&key) else {
                continue;
            };
            *references -= 1;
            if *references > 0 || self.files.held.contains(&page.file) {
                continue;
            }
            cache.references.remove(&key);
            if let Some(directory) = &mut cache.directory {
                cache.stats.delivered += u64::from(remove(nic, directory, page.file, number, m));
            }
        }
    }
}

impl<P: Payload> Kernel<P> {
    /// Blocks of a transient file go to which nothing in a send buffer refers.
    pub(crate) fn remove_delivered<M: Meter>(&mut self, file: FileId, m: &mut M) {
        for (nic, attached) in self.nics.iter_mut() {
            let Some(cache) = attached.cache.as_deref_mut() else {
                continue;
            };
            let delivered =
                |(of, _): &(FileId, u32), references: &u32| *of == file && *references == 0;
            let mut numbers: Vec<u32> = cache
                .references
                .iter()
                .filter(|(key, references)| delivered(key, references))
                .map(|(&(_, number), _)| number)
                .collect();
            numbers.sort_unstable();
            for number in numbers {
                cache.references.remove(&(file, number));
                if let Some(directory) = &mut cache.directory {
                    cache.stats.delivered += u64::from(remove(nic, directory, file, number, m));
                }
            }
        }
    }
}

/// Whether one of `parts` is in this slot.
fn refers(parts: &Parts, slot: u32, block_bytes: u32) -> bool {
    let in_slot = |part: &Part| {
        part.cached
            .is_some_and(|at| at.offset / block_bytes == slot)
    };
    parts.iter().any(in_slot)
}

fn remove<M: Meter>(
    nic: NicId,
    directory: &mut Directory,
    file: FileId,
    number: u32,
    m: &mut M,
) -> bool {
    let Some((slot, _)) = directory.find(file, number) else {
        return false;
    };
    footprint::directory_remove(m, nic, slot);
    directory.remove(file, number)
}

fn reference(slot: u32, within: u32, block_bytes: u32, generation: u32) -> CacheReference {
    CacheReference {
        offset: slot * block_bytes + within,
        generation,
    }
}

#[cfg(test)]
mod costs;

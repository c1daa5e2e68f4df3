//! The driver of the host's own stack: passes packets to an adapter, whole or as the parts in which they are in memory (data-caching 4.3).

use super::End;
use super::data::LinkData;
use super::data_cache::DirectoryWork;
use baton_apps::symbolic;
use baton_host::adapter::PacketPart;
use baton_host::{Bypass, FileContent, SocketId, pages};
use baton_kernel::footprint::PAGE_BYTES;
use baton_kernel::{FileSystem, Meter};
use baton_tcp::Segment;
use baton_wire::{Payload, Symbolic, Time};
use smallvec::SmallVec;

/// Payload of a packet, part by part.
type Parts = SmallVec<[PacketPart<LinkData>; 4]>;

/// How packets are passed to the adapters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// Whether each contiguous piece of memory is a separate part. If this makes no difference, a packet is one piece.
    in_parts: bool,
    /// Maximum number of SENDs per packet.
    most_sends: usize,
}

impl Driver {
    /// Creates a driver for packets with at most `most_payload` bytes. They are sent in parts if the interconnect `takes_time`, or if
    /// content of files may come from a cache; `cache_blocks` is the smallest block size of the caches.
    pub(super) fn new(most_payload: usize, takes_time: bool, cache_blocks: Option<u32>) -> Self {
        let in_parts = takes_time || cache_blocks.is_some();
        let block = cache_blocks.unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
        let most_sends = match in_parts {
            // Content starts and ends anywhere in its blocks; the data before and after it takes other parts.
            true => most_payload.div_ceil(block as usize) + 4,
            false => 1,
        };
        Self {
            in_parts,
            most_sends,
        }
    }

    /// Returns the maximum number of SENDs per packet.
    pub(super) fn most_sends(self) -> usize {
        self.most_sends
    }

    /// Reports whether an adapter has space for any packet.
    pub(super) fn has_room(self, end: &End, socket: SocketId) -> bool {
        end.os
            .has_room_for_packet(&end.link, socket, self.most_sends)
    }

    /// Sends a packet, for which there must be space.
    pub(super) fn send(
        self,
        now: Time,
        (adapter, ends): (usize, &mut [End]),
        socket: SocketId,
        mut segment: Segment<LinkData>,
        files: &mut FileSystem<Symbolic>,
        m: &mut impl Meter,
    ) {
        let End { os, link } = &mut ends[adapter];
        if !self.in_parts || segment.payload.is_empty() {
            os.send_packet(now, link, socket, LinkData::packet(segment), false);
            return;
        }
        let parts = parts_of(&mut segment);
        let before = DirectoryWork::of(ends);
        let End { os, link } = &mut ends[adapter];
        let block_bytes = os.config().nic_cache.block_bytes;
        let block = |content: &FileContent, start| block_of(files, content, start, block_bytes);
        let packet = (LinkData::packet(segment), &parts[..]);
        os.send_packet_in_parts(now, link, socket, packet, block);
        let contents = parts.iter().filter_map(|part| part.content);
        before.charge_since(ends, adapter as u8, contents, m);
    }
}

/// Returns the whole block of a file at `start`, if the block is in memory and has not changed since `content`.
fn block_of(
    files: &mut FileSystem<Symbolic>,
    content: &FileContent,
    start: u64,
    block_bytes: u32,
) -> Result<LinkData, Bypass> {
    if files.revision(content.file) != content.revision {
        return Err(Bypass::OldRevision);
    }
    let block = files.block(content.file, start, block_bytes);
    let block = block.ok_or(Bypass::NotResident)?;
    Ok(LinkData::File(block, content.revision))
}

/// Takes the payload of a packet: content of files is split by page, all other data is one part.
fn parts_of(segment: &mut Segment<LinkData>) -> Parts {
    let mut parts = Parts::new();
    for data in std::mem::take(&mut segment.payload) {
        match data {
            LinkData::File(content, revision) => parts.extend(in_pages(content, revision)),
            other => parts.extend(other.content().map(|data| PacketPart {
                data: LinkData::Part(data),
                content: None,
            })),
        }
    }
    parts
}

/// Splits content of a file with this revision by page.
fn in_pages(content: Symbolic, revision: u32) -> impl Iterator<Item = PacketPart<LinkData>> {
    let (file, offset) = (symbolic::file(&content), symbolic::offset(&content));
    pages(offset, content.len()).map(move |(start, len)| {
        let of_file = FileContent::new(file, offset + start as u64, len as u64);
        PacketPart {
            data: LinkData::Part(content.slice(start, len)),
            content: Some(FileContent {
                revision,
                ..of_file
            }),
        }
    })
}

//! The driver of the host's own stack: packets for an adapter, whole or in the parts that they lie in (data-caching 4.3).

use super::End;
use super::data::LinkData;
use super::data_cache::DirectoryWork;
use baton_apps::symbolic;
use baton_host::adapter::PacketPart;
use baton_host::footprint::PAGE_BYTES;
use baton_host::{Bypass, FileContent, FileSystem, Meter, SocketId, pages};
use baton_tcp::Segment;
use baton_wire::{Payload, Symbolic, Time};
use smallvec::SmallVec;

/// What a packet carries, part by part.
type Parts = SmallVec<[PacketPart<LinkData>; 4]>;

/// How packets are given to the adapters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// Each contiguous piece of memory for itself. Where nothing depends on that a packet is one piece.
    in_parts: bool,
    /// SENDs that a packet takes at most.
    most_sends: usize,
}

impl Driver {
    /// For packets that carry at most so many bytes. They go in parts if the interconnect `takes_time`, or if content of files may come
    /// from a cache, the smallest of whose blocks have so many bytes.
    pub(super) fn new(most_payload: usize, takes_time: bool, cache_blocks: Option<u32>) -> Self {
        let in_parts = takes_time || cache_blocks.is_some();
        let block = cache_blocks.unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
        let most_sends = match in_parts {
            // Content begins and ends anywhere in its blocks; what is before it and behind it are others.
            true => most_payload.div_ceil(block as usize) + 4,
            false => 1,
        };
        Self {
            in_parts,
            most_sends,
        }
    }

    /// SENDs that a packet takes at most.
    pub(super) fn most_sends(self) -> usize {
        self.most_sends
    }

    /// Whether an adapter has room for any packet.
    pub(super) fn has_room(self, end: &End, socket: SocketId) -> bool {
        end.os
            .has_room_for_packet(&end.link, socket, self.most_sends)
    }

    /// Sends a packet, for which there is room.
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

/// A whole block of a file from `start` on, if it is in memory and still what `content` is of.
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

/// Takes what a packet carries: content of files lies in pages, all else in one piece.
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

/// Content of a file of this revision, page by page.
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

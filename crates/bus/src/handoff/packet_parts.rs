//! Packets that are gathered from host memory and the cache (nic_pkt_append_mm, nic_pkt_append_cache; data-caching 4.3).

use super::{CacheCommand, MainMemory, PartFlags};
use baton_tcp::Segment;
use baton_wire::Payload;
use smallvec::SmallVec;

/// Where a part of a packet's data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<D> {
    /// Host memory, where this stands.
    Memory(D),
    /// The cache.
    Cache {
        /// First byte, from the start of the cache.
        offset: u32,
        /// Bytes.
        len: u32,
    },
}

/// The append commands of one packet.
///
/// All that is in host memory is in its segment: behind the headers what their own command carries, then one piece for each
/// [`Part::Memory`].
#[derive(Clone, Debug, PartialEq)]
pub struct PacketInParts<P> {
    segment: Segment<P>,
    parts: SmallVec<[Part<()>; 3]>,
}

impl<P> PacketInParts<P> {
    /// A packet that begins with the headers of `segment` and what is in its payload.
    pub fn new(segment: Segment<P>) -> Self {
        let parts = SmallVec::new();
        Self { segment, parts }
    }

    /// Appends a part.
    #[inline]
    pub fn push(&mut self, part: Part<P>) {
        self.parts.push(match part {
            Part::Memory(data) => {
                self.segment.payload.push(data);
                Part::Memory(())
            }
            Part::Cache { offset, len } => Part::Cache { offset, len },
        });
    }

    /// Its headers, and what of its data is in host memory.
    pub fn head(&self) -> &Segment<P> {
        &self.segment
    }

    /// Its headers, with what of its data is in host memory.
    pub fn into_head(self) -> Segment<P> {
        self.segment
    }

    /// Its data in host memory: what the headers' own command carries, and that of the others, one piece for each.
    pub fn data(&self) -> (&[P], &[P]) {
        let others = self.parts.iter().filter(|part| **part == Part::Memory(()));
        let pieces = &self.segment.payload;
        pieces.split_at(pieces.len() - others.count())
    }

    /// The parts behind the headers' own command.
    pub fn parts(&self) -> impl Iterator<Item = Part<&P>> {
        let mut pieces = self.data().1.iter();
        self.parts.iter().filter_map(move |part| match *part {
            Part::Memory(()) => pieces.next().map(Part::Memory),
            Part::Cache { offset, len } => Some(Part::Cache { offset, len }),
        })
    }

    /// How many commands they are.
    pub fn commands(&self) -> usize {
        1 + self.parts.len()
    }
}

impl<P: Payload> PacketInParts<P> {
    /// Bytes of IP and TCP headers and data.
    pub fn packet_len(&self) -> usize {
        let cached = self.parts.iter().map(|part| match part {
            Part::Memory(()) => 0,
            Part::Cache { len, .. } => *len as usize,
        });
        self.segment.header_len() + self.segment.payload_len() + cached.sum::<usize>()
    }

    /// The commands one by one.
    pub fn into_commands(mut self) -> impl Iterator<Item = CacheCommand<P>> {
        let in_head = self.data().0.len();
        let mut pieces = std::mem::take(&mut self.segment.payload).into_iter();
        self.segment.payload.extend(pieces.by_ref().take(in_head));
        let count = self.parts.len();
        let flags = move |index| PartFlags {
            first: index == 0,
            last: index == count,
        };
        let headers = CacheCommand::AppendMemory {
            part: MainMemory::Headers(self.segment),
            flags: flags(0),
        };
        let parts = self.parts.into_iter().zip(1..);
        let others = parts.filter_map(move |(part, index)| match part {
            Part::Memory(()) => pieces.next().map(|data| CacheCommand::AppendMemory {
                part: MainMemory::Data(data),
                flags: flags(index),
            }),
            Part::Cache { offset, len } => Some(CacheCommand::AppendCache {
                offset,
                len,
                flags: flags(index),
            }),
        });
        std::iter::once(headers).chain(others)
    }
}

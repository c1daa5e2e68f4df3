//! Packets whose parts arrive one by one (nic_pkt_append_mm, nic_pkt_append_cache; data-caching 4.3).

use crate::stats::CacheRefusal;
use baton_bus::handoff::{MainMemory, PacketInParts, Part, PartFlags};
use baton_wire::Payload;

/// The packet whose parts are arriving.
#[derive(Debug)]
pub(crate) enum Assembly<P> {
    /// The next part must be a first one.
    Between,
    /// Parts so far, and the bytes of the packet.
    Open(PacketInParts<P>, usize),
    /// A part made no sense; the packet goes when its last part has come.
    Broken(CacheRefusal),
}

/// What a part completed.
pub(crate) type Completed<P> = Option<Result<PacketInParts<P>, CacheRefusal>>;

impl<P: Payload> Assembly<P> {
    /// Ends a packet that was begun and whose last part did not come before something else did.
    pub(crate) fn interrupt(&mut self) -> Option<CacheRefusal> {
        match std::mem::replace(self, Self::Between) {
            Self::Between => None,
            Self::Open(..) | Self::Broken(_) => Some(CacheRefusal::Unfinished),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, Self::Between)
    }

    /// Takes a part from host memory. A first one carries the headers, and no other does.
    pub(crate) fn append_memory(
        &mut self,
        part: MainMemory<P>,
        flags: PartFlags,
        most_bytes: usize,
    ) -> Completed<P> {
        debug_assert!(
            !flags.first || !self.is_open(),
            "what was begun is interrupted before"
        );
        match part {
            MainMemory::Headers(head) => {
                *self = if flags.first {
                    let len = head.header_len() + head.payload_len();
                    Self::Open(PacketInParts::new(head), len)
                } else {
                    Self::Broken(CacheRefusal::HeadersNotFirst)
                };
            }
            MainMemory::Data(_) if flags.first => {
                *self = Self::Broken(CacheRefusal::FirstWithoutHeaders);
            }
            MainMemory::Data(data) => self.append(data.len(), Part::Memory(data), most_bytes),
        }
        self.complete(flags)
    }

    /// Takes a part from the cache.
    pub(crate) fn append_cache(
        &mut self,
        offset: u32,
        len: u32,
        flags: PartFlags,
        most_bytes: usize,
    ) -> Completed<P> {
        if flags.first {
            *self = Self::Broken(CacheRefusal::FirstWithoutHeaders);
        } else {
            self.append(len as usize, Part::Cache { offset, len }, most_bytes);
        }
        self.complete(flags)
    }

    fn append(&mut self, len: usize, part: Part<P>, most_bytes: usize) {
        match self {
            Self::Open(packet, bytes) => {
                *bytes += len;
                if *bytes > most_bytes {
                    *self = Self::Broken(CacheRefusal::TooLong);
                } else {
                    packet.push(part);
                }
            }
            Self::Between => *self = Self::Broken(CacheRefusal::NoFirst),
            Self::Broken(_) => {}
        }
    }

    fn complete(&mut self, flags: PartFlags) -> Completed<P> {
        if !flags.last {
            return None;
        }
        match std::mem::replace(self, Self::Between) {
            Self::Between => None,
            Self::Open(packet, _) => Some(Ok(packet)),
            Self::Broken(reason) => Some(Err(reason)),
        }
    }
}

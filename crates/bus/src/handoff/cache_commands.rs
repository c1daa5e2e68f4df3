//! Commands of the data cache, and references to what stands in it.

use baton_tcp::Segment;

/// The NIC remembers which insert filled the memory of its cache last in units of so many bytes: no block is smaller.
pub const CACHE_UNIT_BYTES: u32 = 512;

/// Where data to be sent also stands in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheReference {
    /// First byte, from the start of the cache.
    pub offset: u32,
    /// The insert that put it there. When another has gone over it since, the data must come from host memory.
    pub generation: u32,
}

/// Commands of the data cache (data-caching 4.3, Figure 6). They refer to host memory by what stands there.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheCommand<P> {
    /// nic_cache_init: start the cache, empty. Answered by [`Event::CacheReady`](super::Event::CacheReady).
    Init,
    /// nic_cache_insert(mmaddr, ncoffset, len): fetch data from host memory into the cache.
    Insert {
        /// What stands in host memory, in one piece.
        data: P,
        /// Where it goes, from the start of the cache.
        offset: u32,
        /// The number of this insert, for references to it; not 0.
        generation: u32,
    },
    /// nic_pkt_append_mm(mmaddr, len, flags): append data from host memory to the packet.
    AppendMemory {
        /// What stands in host memory, in one piece.
        part: MainMemory<P>,
        /// Its place in the packet.
        flags: PartFlags,
    },
    /// nic_pkt_append_cache(ncoffset, len, flags): append data from the cache to the packet.
    AppendCache {
        /// First byte, from the start of the cache.
        offset: u32,
        /// Bytes.
        len: u32,
        /// Its place in the packet.
        flags: PartFlags,
    },
}

/// A part of a packet in host memory.
#[derive(Clone, Debug, PartialEq)]
pub enum MainMemory<P> {
    /// The protocol headers; what is in the segment's payload follows them. Always the first part, and only that.
    Headers(Segment<P>),
    /// Data.
    Data(P),
}

/// The place of a part in its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartFlags {
    /// It begins a packet.
    pub first: bool,
    /// The packet is complete and may go; checksums are computed over what is sent.
    pub last: bool,
}

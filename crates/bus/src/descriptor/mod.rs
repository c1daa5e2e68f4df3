//! The fixed-size records that travel in the rings between host and adapter (batching 2.2).
//!
//! A [`Descriptor`] is 32 bytes. The host speaks in [`Request`]s, the adapter in [`Response`]s; each is one descriptor,
//! followed by *continuations* where it has something to carry that does not fit: data inside descriptors, or the peers of
//! several accepted connections. How many follow is told by the first, [`Descriptor::continuations`].
//!
//! Layout, four little-endian words of 64 bits:
//!
//! | word | bits 0-7 | 8-15 | 16-31 | 32-63 |
//! |---|---|---|---|---|
//! | 0 | opcode | flags | status or count | socket |
//! | 1 | tag (0-31) | | | length, port or value |
//! | 2, 3 | address in host memory and a value, or an Internet address, or the first 16 bytes of data | | | |

mod endpoint;
mod entries;
mod inline;
mod opcode;
mod request;
mod response;
mod status;

#[cfg(test)]
mod tests;

pub use entries::{Entries, entries, entries_within, whole_entries};
pub use inline::{INLINE_HEAD_BYTES, MOST_INLINE_BYTES, read_inline, write_inline};
pub use opcode::Opcode;
pub use request::{
    Action, Buffer, CACHE_UNIT_BYTES, Close, MOST_BLOCKS_SENT, Request, SocketOption, Times,
};
pub use response::{Moment, Outcome, Peer, Response, SocketInfo, read_peer, write_peer};
pub use status::Status;

use opcode::Flags;

/// The bit of the first word that tells of data in descriptors.
const INLINE_DATA: u64 = Descriptor::flag(Flags::INLINE);
/// The bits of the first word that tell of accepted connections: opcode and direction.
const ACCEPTED: u64 = Opcode::Accept.byte() as u64 | Descriptor::flag(Flags::RESPONSE);
const ACCEPTED_MASK: u64 = 0xff | Descriptor::flag(Flags::RESPONSE);

/// One record of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Descriptor(pub [u64; 4]);

impl Descriptor {
    /// Size of a descriptor, bytes (batching 3.1).
    pub const BYTES: u32 = 32;

    /// What kind of entry it begins.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn opcode(&self) -> Result<Opcode, Malformed> {
        Opcode::from_byte(self.0[0] as u8)
    }

    /// Descriptors that follow it and belong to it. Anything that came from the other side must be
    /// [decoded](Request::decode) first: only then it is known to be in bounds.
    #[inline]
    pub fn continuations(&self) -> usize {
        // Of whatever crosses a link, each descriptor is asked this.
        if self.0[0] & INLINE_DATA != 0 {
            inline::continuations(self.len() as usize)
        } else if self.0[0] & ACCEPTED_MASK == ACCEPTED {
            // The peer of a single connection stands in the descriptor itself.
            let count = usize::from(self.count());
            if count > 1 { count } else { 0 }
        } else {
            0
        }
    }

    /// Bytes of data that stand in it and its continuations.
    pub fn inline_bytes(&self) -> usize {
        if self.flags().contains(Flags::INLINE) {
            (self.len() as usize).min(MOST_INLINE_BYTES)
        } else {
            0
        }
    }

    /// The socket that it is about.
    pub fn socket(&self) -> u32 {
        (self.0[0] >> 32) as u32
    }

    /// The 32 bytes, as they stand in memory.
    #[inline]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *chunk = word.to_le_bytes();
        }
        bytes
    }

    /// From 32 bytes of memory.
    #[inline]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let [first, second, third, fourth] = bytes.as_chunks().0 else {
            unreachable!("32 bytes are four words")
        };
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        Self([word(first), word(second), word(third), word(fourth)])
    }

    /// Where a flag stands in the first word.
    const fn flag(flag: Flags) -> u64 {
        (flag.bits() as u64) << 8
    }

    fn first(opcode: Opcode, flags: Flags, count: u16, socket: u32) -> u64 {
        u64::from(opcode.byte())
            | Self::flag(flags)
            | u64::from(count) << 16
            | u64::from(socket) << 32
    }

    fn second(tag: u32, len: u32) -> u64 {
        u64::from(tag) | u64::from(len) << 32
    }

    /// Whether it is of something that other requests go on with.
    pub fn has_more(&self) -> bool {
        self.flags().contains(Flags::MORE)
    }

    /// Its flags, if `opcode` may have all of them.
    fn flags_among(&self, opcode: Opcode, allowed: Flags) -> Result<Flags, Malformed> {
        let flags = self.flags();
        if allowed.contains(flags) {
            Ok(flags)
        } else {
            let flags = flags.bits();
            Err(Malformed::Flags { opcode, flags })
        }
    }

    fn flags(&self) -> Flags {
        Flags::from_bits_retain((self.0[0] >> 8) as u8)
    }

    fn count(&self) -> u16 {
        (self.0[0] >> 16) as u16
    }

    fn tag(&self) -> u32 {
        self.0[1] as u32
    }

    fn len(&self) -> u32 {
        (self.0[1] >> 32) as u32
    }
}

/// Why a descriptor of the other side makes no sense. Whoever sends one is not to be trusted with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// No such opcode.
    #[error("opcode {0:#04x} does not exist")]
    Opcode(u8),
    /// An opcode that only the other side may use.
    #[error("{0:?} does not belong here")]
    Direction(Opcode),
    /// Flags that this opcode does not have.
    #[error("flags {flags:#04x} do not belong to {opcode:?}")]
    Flags {
        /// The opcode.
        opcode: Opcode,
        /// All its flags.
        flags: u8,
    },
    /// No such status.
    #[error("status {0} does not exist")]
    Status(u16),
    /// No such option.
    #[error("option {0} does not exist")]
    Option(u16),
    /// No such stage of a byte's way.
    #[error("stage {0} does not exist")]
    Stage(u64),
    /// A port above 65535.
    #[error("port {0} does not exist")]
    Port(u32),
    /// More data in descriptors than may be, or none where there must be some.
    #[error("{0} bytes of data in descriptors: expected 1 to {max}", max = MOST_INLINE_BYTES)]
    InlineLength(u32),
    /// A count out of bounds.
    #[error("count {0} is out of bounds")]
    Count(u16),
    /// The transfer ended before the continuations did.
    #[error("{missing} continuations are missing")]
    Truncated {
        /// How many.
        missing: usize,
    },
}

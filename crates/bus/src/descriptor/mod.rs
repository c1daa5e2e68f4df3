//! The fixed-size records that travel in the rings between host and adapter (batching 2.2).
//!
//! A [`Descriptor`] is 32 bytes. The host sends [`Request`]s, the adapter [`Response`]s. Each is one descriptor, followed by
//! *continuations* for contents that do not fit: inline data, or the peers of several accepted connections. The first descriptor determines
//! their number, [`Descriptor::continuations`].
//!
//! Layout, four little-endian words of 64 bits:
//!
//! | word | bits 0-7 | 8-15 | 16-31 | 32-63 |
//! |---|---|---|---|---|
//! | 0 | opcode | flags | status or count | socket |
//! | 1 | tag (0-31) | | | length, port or value |
//! | 2, 3 | address in host memory or [in a file](FilePlace) and a value, or an Internet address, or the first 16 bytes of data | | | |

mod endpoint;
mod entries;
mod file;
mod inline;
mod opcode;
mod request;
mod response;
mod status;

#[cfg(test)]
mod tests;

pub use entries::{Entries, entries, entries_within, whole_entries};
pub use file::{FilePlace, MOST_FILE_BYTES};
pub use inline::{INLINE_HEAD_BYTES, MOST_INLINE_BYTES, read_inline, write_inline};
pub use opcode::Opcode;
pub use request::{
    Action, Buffer, CACHE_UNIT_BYTES, Close, MOST_BLOCKS_SENT, Request, SocketOption, Times,
};
pub use response::{Moment, Outcome, Peer, Response, SocketInfo, read_peer, write_peer};
pub use status::Status;

use opcode::Flags;

/// Bit of the first word that marks inline data.
const INLINE_DATA: u64 = Descriptor::flag(Flags::INLINE);
/// Bits of the first word that mark accepted connections: opcode and direction.
const ACCEPTED: u64 = Opcode::Accept.byte() as u64 | Descriptor::flag(Flags::RESPONSE);
const ACCEPTED_MASK: u64 = 0xff | Descriptor::flag(Flags::RESPONSE);

/// One record in a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Descriptor(pub [u64; 4]);

impl Descriptor {
    /// Size of a descriptor, bytes (batching 3.1).
    pub const BYTES: u32 = 32;

    /// Returns the kind of entry that the descriptor begins.
    ///
    /// # Errors
    /// Fails if the opcode does not exist.
    #[inline]
    pub fn opcode(&self) -> Result<Opcode, Malformed> {
        Opcode::from_byte(self.0[0] as u8)
    }

    /// Returns the number of continuations that follow the descriptor. Anything that came from the other side must be
    /// [decoded](Request::decode) first: only then is it known to be within bounds.
    #[inline]
    pub fn continuations(&self) -> usize {
        // This runs for every descriptor that crosses a link.
        if self.0[0] & INLINE_DATA != 0 {
            inline::continuations(self.len() as usize)
        } else if self.0[0] & ACCEPTED_MASK == ACCEPTED {
            // The descriptor itself holds the peer of a single connection.
            let count = usize::from(self.count());
            if count > 1 { count } else { 0 }
        } else {
            0
        }
    }

    /// Returns the number of data bytes in the descriptor and its continuations.
    pub fn inline_bytes(&self) -> usize {
        if self.flags().contains(Flags::INLINE) {
            (self.len() as usize).min(MOST_INLINE_BYTES)
        } else {
            0
        }
    }

    /// Returns the number of the socket.
    pub fn socket(&self) -> u32 {
        (self.0[0] >> 32) as u32
    }

    /// Returns the 32 bytes of the descriptor, as in memory.
    #[inline]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *chunk = word.to_le_bytes();
        }
        bytes
    }

    /// Creates a descriptor from its 32 bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let [first, second, third, fourth] = bytes.as_chunks().0 else {
            unreachable!("32 bytes are four words")
        };
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        Self([word(first), word(second), word(third), word(fourth)])
    }

    /// Returns the position of a flag in the first word.
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

    /// Returns whether another request continues this one.
    pub fn has_more(&self) -> bool {
        self.flags().contains(Flags::MORE)
    }

    /// Returns the flags, if `opcode` permits all of them.
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

/// Reason why a descriptor of the other side is malformed. A side that sends one must not be trusted any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// The opcode does not exist.
    #[error("opcode {0:#04x} does not exist")]
    Opcode(u8),
    /// Only the other side may use this opcode.
    #[error("opcode {0:?} is not expected here")]
    Direction(Opcode),
    /// The opcode does not permit these flags.
    #[error("flags {flags:#04x} are not allowed for {opcode:?}")]
    Flags {
        /// The opcode.
        opcode: Opcode,
        /// All flags of the descriptor.
        flags: u8,
    },
    /// The status does not exist.
    #[error("status {0} does not exist")]
    Status(u16),
    /// The option does not exist.
    #[error("option {0} does not exist")]
    Option(u16),
    /// The stage of a byte does not exist.
    #[error("stage {0} does not exist")]
    Stage(u64),
    /// The port is above 65535.
    #[error("port {0} does not exist")]
    Port(u32),
    /// Too much inline data, or none where some is required.
    #[error("{0} bytes of data in descriptors: expected 1 to {max}", max = MOST_INLINE_BYTES)]
    InlineLength(u32),
    /// The count is out of bounds.
    #[error("count {0} is out of bounds")]
    Count(u16),
    /// The transfer ended before all continuations.
    #[error("{missing} continuations are missing")]
    Truncated {
        /// Number of missing continuations.
        missing: usize,
    },
}

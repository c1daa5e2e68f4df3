//! Data that can be inside descriptors (batching 2.3, "immediate mode").

use crate::descriptor::{
    Descriptor, INLINE_HEAD_BYTES, MOST_INLINE_BYTES, Malformed, read_inline, write_inline,
};
use baton_wire::{Payload, Symbolic};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Data that can be inside descriptors. An entry has at least [`INLINE_HEAD_BYTES`] for the data, however short it is.
pub trait Inline: Payload + Serialize + DeserializeOwned {
    /// Whether the data consists of bytes, so that pieces written one after another into a buffer become one piece there. A buffer holds
    /// other data only if the pieces [join](Payload::try_append).
    const IS_BYTES: bool;

    /// Returns the contents of a buffer when `next` is written after `self`, or `None` if it cannot hold both.
    fn followed_by(&self, next: &Self) -> Option<Self>;

    /// Writes a representation of the data into `room`, which is as long as the data and at least [`INLINE_HEAD_BYTES`].
    fn to_inline(&self, room: &mut [u8]);

    /// Reads `len` bytes of data from their representation in `room`, or returns `None` if it is invalid.
    fn from_inline(room: &[u8], len: usize) -> Option<Self>;

    /// Returns the bytes, or `None` if the data only represents bytes symbolically.
    fn as_bytes(&self) -> Option<&[u8]>;

    /// Creates data from these bytes, or returns `None` if data of this type is symbolic.
    fn of_bytes(bytes: Vec<u8>) -> Option<Self>;

    /// Returns the data in memory of its own. Bytes are copied, because otherwise they would keep the whole shared buffer in memory.
    #[must_use]
    fn stored(self) -> Self {
        let copy = self
            .as_bytes()
            .and_then(|bytes| Self::of_bytes(bytes.into()));
        copy.unwrap_or(self)
    }
}

impl Inline for Bytes {
    const IS_BYTES: bool = true;

    fn followed_by(&self, next: &Self) -> Option<Self> {
        Some([&self[..], &next[..]].concat().into())
    }

    fn to_inline(&self, room: &mut [u8]) {
        room[..self.len()].copy_from_slice(self);
    }

    fn from_inline(room: &[u8], len: usize) -> Option<Self> {
        room.get(..len).map(Bytes::copy_from_slice)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        Some(bytes.into())
    }
}

/// Source and offset take the first 16 bytes; the descriptor has the length, so that as many descriptors cross as real bytes would need.
impl Inline for Symbolic {
    const IS_BYTES: bool = false;

    fn followed_by(&self, next: &Self) -> Option<Self> {
        let mut both = *self;
        both.try_append(next).then_some(both)
    }

    fn to_inline(&self, room: &mut [u8]) {
        room[..8].copy_from_slice(&self.source.to_le_bytes());
        room[8..INLINE_HEAD_BYTES].copy_from_slice(&self.offset.to_le_bytes());
    }

    fn from_inline(room: &[u8], len: usize) -> Option<Self> {
        let (source, rest) = room.split_first_chunk()?;
        let offset = u64::from_le_bytes(*rest.first_chunk()?);
        // A range beyond the end of every source is invalid.
        offset.checked_add(len as u64)?;
        Some(Self {
            source: u64::from_le_bytes(*source),
            offset,
            len: u32::try_from(len).ok()?,
        })
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn of_bytes(_bytes: Vec<u8>) -> Option<Self> {
        None
    }
}

/// Returns whether `data` may be inside descriptors.
pub fn fits_inline<D: Payload>(data: &D) -> bool {
    !data.is_empty() && data.len() <= MOST_INLINE_BYTES
}

/// Writes `data` into `head`, which was encoded with its length, and appends the continuations to `tail`.
///
/// Panics if the data does not [fit](fits_inline) or differs from the length in `head`.
pub fn embed<D: Inline>(data: &D, head: &mut Descriptor, tail: &mut impl Extend<Descriptor>) {
    assert!(fits_inline(data), "data in descriptors is short");
    let mut room = [0; MOST_INLINE_BYTES];
    let room = &mut room[..data.len().max(INLINE_HEAD_BYTES)];
    data.to_inline(room);
    write_inline(head, room, tail);
}

/// Reads the data of an entry: its head and the continuations that follow.
///
/// # Errors
/// Fails if the length is out of bounds, if continuations are missing, or if the data is invalid.
pub fn extract<D: Inline>(entry: &[Descriptor]) -> Result<D, Malformed> {
    let mut room = [0; MOST_INLINE_BYTES];
    let len = read_inline(entry, &mut room)?.len();
    D::from_inline(&room[..len.max(INLINE_HEAD_BYTES)], len)
        .ok_or(Malformed::InlineLength(len as u32))
}

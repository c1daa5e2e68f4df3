//! Data that can stand inside descriptors (batching 2.3, "immediate mode").

use crate::descriptor::{
    Descriptor, INLINE_HEAD_BYTES, MOST_INLINE_BYTES, Malformed, read_inline, write_inline,
};
use baton_wire::{Payload, Symbolic};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Data that can stand inside descriptors. An entry has at least [`INLINE_HEAD_BYTES`] for it, however short the data is.
pub trait Inline: Payload + Serialize + DeserializeOwned {
    /// Pieces that are written one behind the other into a buffer are one piece there, because they are bytes. Of others, a buffer
    /// holds only those that [join](Payload::try_append).
    const IS_BYTES: bool;

    /// What a buffer holds when `next` is written behind this; none when it cannot hold both.
    fn followed_by(&self, next: &Self) -> Option<Self>;

    /// Writes what stands for it into `room`, which is as long as the data and at least [`INLINE_HEAD_BYTES`].
    fn to_inline(&self, room: &mut [u8]);

    /// The `len` bytes of data that `room` tells of; none when that is no data.
    fn from_inline(room: &[u8], len: usize) -> Option<Self>;

    /// The bytes; none where data only stands for bytes.
    fn as_bytes(&self) -> Option<&[u8]>;

    /// Data that is these bytes; none where data only stands for bytes.
    fn of_bytes(bytes: Vec<u8>) -> Option<Self>;

    /// The same as a memory of its own keeps it. Bytes are copied, because a buffer that they share with others would be kept as long as
    /// they are.
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

/// Source and offset take the first 16 bytes; the length is the descriptor's, so that as many descriptors cross as bytes would need.
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
        // A range beyond the end of all sources was not written by this side's counterpart.
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

/// Whether `data` may stand in descriptors.
pub fn fits_inline<D: Payload>(data: &D) -> bool {
    !data.is_empty() && data.len() <= MOST_INLINE_BYTES
}

/// Puts `data` into `head`, which was encoded with its length, and appends the continuations to `tail`.
///
/// Panics when it does not [fit](fits_inline) or is not as long as `head` says.
pub fn embed<D: Inline>(data: &D, head: &mut Descriptor, tail: &mut impl Extend<Descriptor>) {
    assert!(fits_inline(data), "data in descriptors is short");
    let mut room = [0; MOST_INLINE_BYTES];
    let room = &mut room[..data.len().max(INLINE_HEAD_BYTES)];
    data.to_inline(room);
    write_inline(head, room, tail);
}

/// The data of an entry: its head and the continuations that follow.
///
/// # Errors
/// The length is out of bounds, continuations are missing, or what stands there is no data.
pub fn extract<D: Inline>(entry: &[Descriptor]) -> Result<D, Malformed> {
    let mut room = [0; MOST_INLINE_BYTES];
    let len = read_inline(entry, &mut room)?.len();
    D::from_inline(&room[..len.max(INLINE_HEAD_BYTES)], len)
        .ok_or(Malformed::InlineLength(len as u32))
}

//! Data inside descriptors (batching 2.3, "immediate mode").

use super::{Descriptor, Malformed};

/// Data that fits into the first descriptor, bytes.
pub const INLINE_HEAD_BYTES: usize = 16;
/// Data that may stand in a descriptor and its continuations, bytes: eight descriptors in all.
pub const MOST_INLINE_BYTES: usize = INLINE_HEAD_BYTES + 7 * Descriptor::BYTES as usize;

/// Continuations of an entry with so much data. No more than there may be, whatever `len` says.
#[inline]
pub(super) fn continuations(len: usize) -> usize {
    len.min(MOST_INLINE_BYTES)
        .saturating_sub(INLINE_HEAD_BYTES)
        .div_ceil(Descriptor::BYTES as usize)
}

/// Whether so much data may stand in descriptors.
pub(super) fn check(len: u32) -> Result<u16, Malformed> {
    if len == 0 || len as usize > MOST_INLINE_BYTES {
        return Err(Malformed::InlineLength(len));
    }
    Ok(len as u16)
}

/// Puts `data` into `head`, which says that it is inline, and appends its continuations to `tail`. It is as long as the head says;
/// what stands for shorter data may take all of [`INLINE_HEAD_BYTES`], for which there is room anyway.
///
/// Panics when it is of another length or longer than [`MOST_INLINE_BYTES`].
pub fn write_inline(head: &mut Descriptor, data: &[u8], tail: &mut impl Extend<Descriptor>) {
    let len = head.len() as usize;
    assert!(
        data.len() == len || data.len() == len.max(INLINE_HEAD_BYTES),
        "the head tells the length"
    );
    assert!(
        data.len() <= MOST_INLINE_BYTES,
        "data in descriptors is short"
    );
    let (first, rest) = data.split_at(data.len().min(INLINE_HEAD_BYTES));
    let mut bytes = [0; INLINE_HEAD_BYTES];
    bytes[..first.len()].copy_from_slice(first);
    let number = u128::from_le_bytes(bytes);
    head.0[2] = number as u64;
    head.0[3] = (number >> 64) as u64;
    tail.extend(rest.chunks(Descriptor::BYTES as usize).map(|chunk| {
        let mut bytes = [0; Descriptor::BYTES as usize];
        bytes[..chunk.len()].copy_from_slice(chunk);
        Descriptor::from_bytes(&bytes)
    }));
}

/// The data of an entry: its head and the continuations that follow; the length is the head's. `data` gets the bytes, and whatever
/// follows them in the entry.
///
/// # Errors
/// The length is out of bounds, or continuations are missing.
pub fn read_inline<'a>(
    entry: &[Descriptor],
    data: &'a mut [u8; MOST_INLINE_BYTES],
) -> Result<&'a [u8], Malformed> {
    let head = entry.first().ok_or(Malformed::Truncated { missing: 1 })?;
    let len = usize::from(check(head.len())?);
    let tail = entry
        .get(1..=continuations(len))
        .ok_or_else(|| Malformed::Truncated {
            missing: 1 + continuations(len) - entry.len(),
        })?;
    let number = u128::from(head.0[2]) | u128::from(head.0[3]) << 64;
    data[..INLINE_HEAD_BYTES].copy_from_slice(&number.to_le_bytes());
    let places = data[INLINE_HEAD_BYTES..].chunks_exact_mut(Descriptor::BYTES as usize);
    for (place, descriptor) in places.zip(tail) {
        place.copy_from_slice(&descriptor.to_bytes());
    }
    Ok(&data[..len])
}

//! Data inside descriptors (batching 2.3, "immediate mode").

use super::{Descriptor, Malformed};

/// Bytes of data that fit in the first descriptor.
pub const INLINE_HEAD_BYTES: usize = 16;
/// Maximum number of data bytes in a descriptor and its continuations: eight descriptors in all.
pub const MOST_INLINE_BYTES: usize = INLINE_HEAD_BYTES + 7 * Descriptor::BYTES as usize;

/// Returns the number of continuations of an entry with `len` bytes of data. Never exceeds the maximum, whatever `len` is.
#[inline]
pub(super) fn continuations(len: usize) -> usize {
    len.min(MOST_INLINE_BYTES)
        .saturating_sub(INLINE_HEAD_BYTES)
        .div_ceil(Descriptor::BYTES as usize)
}

/// Checks that `len` bytes of data may be inline.
pub(super) fn check(len: u32) -> Result<u16, Malformed> {
    if len == 0 || len as usize > MOST_INLINE_BYTES {
        return Err(Malformed::InlineLength(len));
    }
    Ok(len as u16)
}

/// Writes `data` into `head`, whose flags say that it is inline, and appends its continuations to `tail`. The head determines the length; a
/// placeholder for shorter data may take all of [`INLINE_HEAD_BYTES`], which are always available.
///
/// Panics if `data` is of another length or longer than [`MOST_INLINE_BYTES`].
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

/// Reads the data of an entry from its head and continuations. The head determines the length. `data` receives the bytes and the padding
/// that follows them in the entry.
///
/// # Errors
/// Fails if the length is out of bounds or if continuations are missing.
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

//! The bytes that flows carry: known at each offset, so that each byte received can be checked.

use bytes::Bytes;
use std::sync::LazyLock;

/// Not a multiple of any segment size, so that a byte out of place shows.
const PERIOD: usize = 65_521;
/// Longest run handed out at once.
pub const LONGEST: usize = 16 * 1024;

static PATTERN: LazyLock<Bytes> = LazyLock::new(|| {
    let byte = |index: usize| ((index % PERIOD).wrapping_mul(2_654_435_761) >> 13) as u8;
    (0..PERIOD + LONGEST).map(byte).collect()
});

/// The bytes of a flow from `offset` on, at most [`LONGEST`] of them.
pub fn run_at(offset: u64, len: usize) -> Bytes {
    let start = (offset % PERIOD as u64) as usize;
    PATTERN.slice(start..start + len.min(LONGEST))
}

/// Asserts that `bytes` are those of a flow from `offset` on.
pub fn check(offset: u64, mut bytes: &[u8]) {
    let mut at = offset;
    while !bytes.is_empty() {
        let len = bytes.len().min(LONGEST);
        let expected = run_at(at, len);
        assert!(expected == bytes[..len], "the bytes at {at} are as sent");
        bytes = &bytes[len..];
        at += len as u64;
    }
}

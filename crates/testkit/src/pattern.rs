//! Bytes that are known at each offset, so that each byte received can be checked.

use bytes::Bytes;
use std::sync::LazyLock;

/// Not a multiple of any segment size, so that a byte out of place shows.
const PERIOD: usize = 65_521;

/// Longest piece handed out at once.
const LONGEST: usize = 16 * 1024;

static BYTES: LazyLock<Bytes> = LazyLock::new(|| {
    let byte = |index: usize| ((index % PERIOD).wrapping_mul(2_654_435_761) >> 13) as u8;
    (0..PERIOD + LONGEST).map(byte).collect()
});

/// What one end of a connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(u64);

impl Pattern {
    /// Bytes handed out at once at most.
    pub const LONGEST: usize = LONGEST;

    /// Patterns with keys that differ have other bytes at the same offset.
    pub const fn new(key: u64) -> Self {
        Self(key)
    }

    /// From `offset` on, at most [`Pattern::LONGEST`] of them. Takes no memory.
    pub fn piece(self, offset: u64, len: usize) -> Bytes {
        let start = (offset + self.0 % PERIOD as u64 * 257) % PERIOD as u64;
        BYTES.slice(start as usize..start as usize + len.min(LONGEST))
    }

    /// The first `len` of them.
    pub fn bytes(self, len: usize) -> Vec<u8> {
        let starts = (0..len).step_by(LONGEST);
        let pieces: Vec<Bytes> = starts.map(|at| self.piece(at as u64, len - at)).collect();
        pieces.concat()
    }

    /// Checks what arrived from `offset` on.
    ///
    /// # Panics
    /// When that is not what was sent.
    #[track_caller]
    pub fn check(self, offset: u64, arrived: &[u8]) {
        for (at, part) in (offset..).step_by(LONGEST).zip(arrived.chunks(LONGEST)) {
            let is_right = self.piece(at, part.len()) == part;
            assert!(is_right, "the bytes from {at} on are as they were sent");
        }
    }
}

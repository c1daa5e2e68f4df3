//! Bytes that are known at each offset, so that each byte received can be checked.

use bytes::Bytes;
use std::sync::LazyLock;

/// Number of bytes after which a pattern repeats; not a multiple of any segment size, so that misplaced bytes are detected.
const PERIOD: usize = 65_521;

/// Maximum length of a piece, bytes.
const LONGEST: usize = 16 * 1024;

static BYTES: LazyLock<Bytes> = LazyLock::new(|| {
    let byte = |index: usize| ((index % PERIOD).wrapping_mul(2_654_435_761) >> 13) as u8;
    (0..PERIOD + LONGEST).map(byte).collect()
});

/// The bytes that one end of a connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(u64);

impl Pattern {
    /// Maximum length of a piece, bytes.
    pub const LONGEST: usize = LONGEST;

    /// Creates a pattern. Patterns with different keys have different bytes at the same offset.
    pub const fn new(key: u64) -> Self {
        Self(key)
    }

    /// Returns the bytes from `offset` on, at most [`Pattern::LONGEST`]. Does not allocate.
    pub fn piece(self, offset: u64, len: usize) -> Bytes {
        let start = (offset + self.0 % PERIOD as u64 * 257) % PERIOD as u64;
        BYTES.slice(start as usize..start as usize + len.min(LONGEST))
    }

    /// Returns the first `len` bytes.
    pub fn bytes(self, len: usize) -> Vec<u8> {
        let starts = (0..len).step_by(LONGEST);
        let pieces: Vec<Bytes> = starts.map(|at| self.piece(at as u64, len - at)).collect();
        pieces.concat()
    }

    /// Checks the bytes that arrived from `offset` on.
    ///
    /// # Panics
    /// If they differ from those that were sent.
    #[track_caller]
    pub fn check(self, offset: u64, arrived: &[u8]) {
        for (at, part) in (offset..).step_by(LONGEST).zip(arrived.chunks(LONGEST)) {
            let is_right = self.piece(at, part.len()) == part;
            assert!(
                is_right,
                "the bytes from {at} on differ from those that were sent"
            );
        }
    }
}

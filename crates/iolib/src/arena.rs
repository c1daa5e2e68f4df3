//! Buffers that frames are received into, without an allocation for each.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;

/// Bytes of one chunk. A frame that is kept for long keeps a whole chunk, so it is small.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that are kept to be used again; what is beyond them is given back to the allocator.
const MOST_SPARE_CHUNKS: usize = 64;

/// Hands out frames as counted slices of chunks, and uses a chunk again when all its frames are gone.
#[derive(Debug, Default)]
pub struct Arena {
    current: BytesMut,
    /// Chunks of which frames may still be about, oldest first.
    used: VecDeque<BytesMut>,
    allocated: u64,
}

impl Arena {
    /// Chunks allocated since it was made: stands still once there are enough.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// A copy of `frame`.
    pub fn copy(&mut self, frame: &[u8]) -> Bytes {
        self.provide(frame.len());
        self.current.put_slice(frame);
        self.current.split().freeze()
    }

    /// Lets `read` write a frame of at most `limit` bytes and say how many it wrote.
    ///
    /// # Errors
    /// Those of `read`.
    #[allow(unsafe_code)]
    pub fn fill(
        &mut self,
        limit: usize,
        read: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<Filled>,
    ) -> io::Result<Bytes> {
        self.provide(limit);
        let Filled(len) = read(&mut self.current.spare_capacity_mut()[..limit])?;
        assert!(len <= limit, "no more is written than there is room for");
        // SAFETY: whoever makes a `Filled` vouches that so many bytes were written, and there is room for them.
        unsafe { self.current.advance_mut(len) };
        Ok(self.current.split().freeze())
    }

    /// Sees to it that `len` more bytes fit into the current chunk.
    fn provide(&mut self, len: usize) {
        // Usually all frames of the chunk are gone by the time it is full: it stays in the processor's cache.
        if self.current.capacity() - self.current.len() >= len || self.current.try_reclaim(len) {
            return;
        }
        let had_chunk = self.allocated > 0;
        let chunk = self.oldest_free(len.max(CHUNK_BYTES));
        let full = std::mem::replace(&mut self.current, chunk);
        if had_chunk && self.used.len() < MOST_SPARE_CHUNKS {
            self.used.push_back(full);
        }
    }

    /// The oldest chunk if its frames are gone, otherwise a new one.
    fn oldest_free(&mut self, len: usize) -> BytesMut {
        if let Some(mut oldest) = self.used.pop_front() {
            if oldest.try_reclaim(len) {
                return oldest;
            }
            self.used.push_back(oldest);
        }
        self.allocated += 1;
        BytesMut::with_capacity(len)
    }
}

/// How many bytes a reader has written, from the first one on.
#[derive(Clone, Copy, Debug)]
pub struct Filled(usize);

impl Filled {
    /// The bytes that a system call has initialised, as it tells.
    pub fn of(written: &[u8]) -> Self {
        Self(written.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_used_again_once_their_frames_are_gone() {
        let mut arena = Arena::default();
        for round in 0..10_000_usize {
            let frame = vec![round as u8; 1514];
            assert_eq!(arena.copy(&frame), frame);
        }
        assert_eq!(arena.allocated(), 1);
    }

    #[test]
    fn frames_that_are_kept_stay_as_they_are() {
        let mut arena = Arena::default();
        let mut kept = VecDeque::new();
        for round in 0..5_000_usize {
            kept.push_back((round as u8, arena.copy(&[round as u8; 1000])));
            if kept.len() > 300 {
                let (byte, frame) = kept.pop_front().expect("a frame");
                assert!(frame.iter().all(|&b| b == byte));
            }
        }
        assert!(arena.allocated() < 20, "{} chunks", arena.allocated());
    }

    #[test]
    fn a_frame_may_be_larger_than_a_chunk() {
        let mut arena = Arena::default();
        let frame = vec![7; 3 * CHUNK_BYTES];
        assert_eq!(arena.copy(&frame), frame);
    }
}

//! Buffers to receive frames into without an allocation for each frame.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;

/// Size of a chunk, bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that are kept to be used again; what is beyond them is given back to the allocator.
const MOST_SPARE_CHUNKS: usize = 64;

/// Hands out frames as reference-counted slices of chunks, and reuses a chunk once all its frames are dropped.
#[derive(Debug, Default)]
pub struct Arena {
    current: BytesMut,
    /// Chunks some of whose frames may still exist, oldest first.
    used: VecDeque<BytesMut>,
    allocated: u64,
}

impl Arena {
    /// Returns the number of chunks.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// A copy of `frame`.
    pub fn copy(&mut self, frame: &[u8]) -> Bytes {
        self.provide(frame.len());
        self.current.put_slice(frame);
        self.current.split().freeze()
    }

    /// Lets `read` write a frame of at most `limit` bytes into a buffer, and keeps the bytes that `read` returns, which it has initialised
    /// at the start of the buffer. System calls that receive into such a buffer return exactly these.
    ///
    /// ```
    /// # use baton_iolib::Arena;
    /// let frame = Arena::default().fill(100, |room| {
    ///     let (start, _) = room.split_at_mut(5);
    ///     Ok(start.write_copy_of_slice(b"hello"))
    /// });
    /// assert_eq!(frame.expect("it was written"), "hello");
    /// ```
    ///
    /// Bytes that are stored elsewhere cannot be returned, unless they are static:
    ///
    /// ```compile_fail
    /// # use baton_iolib::Arena;
    /// let elsewhere = vec![0; 100];
    /// let _ = Arena::default().fill(100, |_| Ok(&elsewhere));
    /// ```
    ///
    /// # Errors
    /// Errors of `read`.
    ///
    /// # Panics
    /// If `read` returns other bytes than those at the start of its buffer.
    #[allow(unsafe_code)]
    pub fn fill(
        &mut self,
        limit: usize,
        read: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> io::Result<&'a [u8]>,
    ) -> io::Result<Bytes> {
        self.provide(limit);
        let room = &mut self.current.spare_capacity_mut()[..limit];
        let start = room.as_ptr().cast();
        let written = read(room)?;
        let len = written.len();
        assert!(
            len == 0 || written.as_ptr() == start && len <= limit,
            "what is kept is the start of the room"
        );
        // SAFETY: the bytes from the start of the room on are initialised, and there is room for so many, as `written` refers to just
        // these: a reference that is not empty cannot have the room's address and refer to anything else.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough rounds to use all chunks; Miri is slow.
    const ROUNDS: usize = if cfg!(miri) { 100 } else { 5_000 };

    #[test]
    fn chunks_are_used_again_once_their_frames_are_gone() {
        let mut arena = Arena::default();
        for round in 0..ROUNDS {
            let frame = vec![round as u8; 1514];
            assert_eq!(arena.copy(&frame), frame);
        }
        assert_eq!(arena.allocated(), 1);
    }

    #[test]
    fn frames_that_are_kept_stay_as_they_are() {
        let mut arena = Arena::default();
        let mut kept = VecDeque::new();
        for round in 0..ROUNDS {
            kept.push_back((round as u8, arena.copy(&[round as u8; 1000])));
            if kept.len() > ROUNDS.min(300) / 2 {
                let (byte, frame) = kept.pop_front().expect("a frame");
                assert_eq!(frame, vec![byte; 1000]);
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
    #[test]
    fn what_was_written_is_kept() {
        let mut arena = Arena::default();
        let frame = arena.fill(100, |room| Ok(room[..3].write_copy_of_slice(&[1, 2, 3])));
        assert_eq!(frame.expect("it was written"), [1, 2, 3][..]);
        let nothing = arena.fill(100, |_| Ok(&[]));
        assert!(nothing.expect("no error").is_empty());
        let failed = arena.fill(100, |_| Err(io::ErrorKind::WouldBlock.into()));
        assert!(failed.is_err());
    }

    #[test]
    #[should_panic(expected = "the start of the room")]
    fn bytes_that_stand_elsewhere_are_not_taken_for_what_was_written() {
        static ELSEWHERE: [u8; 100] = [0; 100];
        let _ = Arena::default().fill(100, |_| Ok(&ELSEWHERE));
    }

    #[test]
    #[should_panic(expected = "the start of the room")]
    fn bytes_in_the_middle_of_the_room_are_not_taken_for_its_start() {
        let _ = Arena::default().fill(100, |room| Ok(room[50..].write_copy_of_slice(&[7; 50])));
    }
}

//! Buffers to receive frames into without an allocation for each frame.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;

/// Size of a chunk, bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Default of the maximum number of chunks. A frame that is kept keeps its whole chunk in use; when no chunk is free, frames get memory of their own.
const MOST_CHUNKS: usize = 64;
/// Number of used chunks that are tried before a frame gets memory of its own.
const MOST_TRIES: usize = 4;

/// Hands out frames as reference-counted slices of chunks, and reuses a chunk once all its frames are dropped.
#[derive(Debug)]
pub struct Arena {
    current: BytesMut,
    /// Chunks some of whose frames may still exist, oldest first.
    used: VecDeque<BytesMut>,
    /// Memory for frames when no chunk is free.
    lone: BytesMut,
    most_chunks: usize,
    allocated: u64,
    alone: u64,
}

impl Default for Arena {
    fn default() -> Self {
        Self::of_chunks(MOST_CHUNKS)
    }
}

impl Arena {
    /// Creates an arena of at most this many chunks of 64 KiB.
    pub fn of_chunks(most_chunks: usize) -> Self {
        Self {
            current: BytesMut::new(),
            used: VecDeque::new(),
            lone: BytesMut::new(),
            most_chunks,
            allocated: 0,
            alone: 0,
        }
    }

    /// Returns the number of chunks.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Returns the number of frames that got memory of their own.
    pub fn alone(&self) -> u64 {
        self.alone
    }

    /// Returns a copy of `frame`.
    pub fn copy(&mut self, frame: &[u8]) -> Bytes {
        if !self.provide(frame.len()) {
            return Bytes::copy_from_slice(frame);
        }
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
        let mut own = BytesMut::new();
        let memory = match self.provide(limit) {
            true => &mut self.current,
            false => {
                own.reserve(limit);
                &mut own
            }
        };
        let room = &mut memory.spare_capacity_mut()[..limit];
        let start = room.as_ptr().cast();
        let written = read(room)?;
        let len = written.len();
        assert!(
            len == 0 || written.as_ptr() == start && len <= limit,
            "what is kept is the start of the room"
        );
        // SAFETY: `written` refers to exactly `len` initialised bytes at the start of the buffer, which is large enough: a reference that
        // is not empty cannot have the buffer's address and refer to anything else.
        unsafe { memory.advance_mut(len) };
        match own.is_empty() {
            true => Ok(self.current.split().freeze()),
            // The memory of a short frame would be mostly unused.
            false if len * 2 < limit => Ok(Bytes::copy_from_slice(&own)),
            false => Ok(own.freeze()),
        }
    }

    /// Returns an empty buffer with space for `len` bytes. Append frames to it, and take each with `split`.
    pub fn memory(&mut self, len: usize) -> &mut BytesMut {
        if self.provide(len) {
            return &mut self.current;
        }
        self.lone = BytesMut::with_capacity(len);
        &mut self.lone
    }

    /// Makes space for `len` more bytes in the current chunk. Returns `false` if the frame needs memory of its own.
    fn provide(&mut self, len: usize) -> bool {
        // Usually all frames of the chunk are dropped by the time it is full, so the same chunk stays in the processor's cache.
        if self.current.capacity() - self.current.len() >= len || self.current.try_reclaim(len) {
            return true;
        }
        let Some(chunk) = self.free_chunk(len) else {
            self.alone += 1;
            return false;
        };
        let full = std::mem::replace(&mut self.current, chunk);
        if full.capacity() > 0 || self.allocated > 1 {
            self.used.push_back(full);
        }
        true
    }

    /// Returns one of the oldest chunks if its frames are dropped, or a new chunk.
    fn free_chunk(&mut self, len: usize) -> Option<BytesMut> {
        if len > CHUNK_BYTES {
            return None;
        }
        for _ in 0..self.used.len().min(MOST_TRIES) {
            let mut oldest = self.used.pop_front()?;
            if oldest.try_reclaim(CHUNK_BYTES) {
                return Some(oldest);
            }
            self.used.push_back(oldest);
        }
        if self.allocated as usize >= self.most_chunks {
            return None;
        }
        self.allocated += 1;
        Some(BytesMut::with_capacity(CHUNK_BYTES))
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
    fn retained_frames_do_not_change() {
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
        assert_eq!((arena.allocated(), arena.alone()), (0, 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for it")]
    fn frames_retained_for_long_use_bounded_memory() {
        let mut arena = Arena::default();
        let mut kept = Vec::new();
        let frames = 4 * MOST_CHUNKS * CHUNK_BYTES / 1000;
        for round in 0..frames {
            let frame = match round % 2 {
                0 => arena.copy(&[round as u8; 1000]),
                _ => arena
                    .fill(2000, |room| {
                        Ok(room[..1000].write_copy_of_slice(&[round as u8; 1000]))
                    })
                    .expect("it was written"),
            };
            // Keeps at least one frame of each chunk.
            if round % 32 == 0 {
                kept.push((round as u8, frame));
            }
        }
        assert_eq!(arena.allocated() as usize, MOST_CHUNKS);
        assert!(arena.alone() > frames as u64 / 2, "{}", arena.alone());
        assert!(kept.iter().all(|(byte, frame)| frame[..] == [*byte; 1000]));
        kept.clear();
        let alone = arena.alone();
        for round in 0..ROUNDS {
            assert_eq!(arena.copy(&[round as u8; 1000])[..], [round as u8; 1000]);
        }
        assert!(
            arena.alone() <= alone + MOST_CHUNKS as u64,
            "{}",
            arena.alone()
        );
    }
    #[test]
    fn only_written_bytes_are_kept() {
        let mut arena = Arena::default();
        let frame = arena.fill(100, |room| Ok(room[..3].write_copy_of_slice(&[1, 2, 3])));
        assert_eq!(frame.expect("it was written"), [1, 2, 3][..]);
        let nothing = arena.fill(100, |_| Ok(&[]));
        assert!(nothing.expect("no error").is_empty());
        let failed = arena.fill(100, |_| Err(io::ErrorKind::WouldBlock.into()));
        assert!(failed.is_err());
    }

    #[test]
    fn memory_has_the_requested_capacity() {
        let mut arena = Arena::default();
        for len in [10, CHUNK_BYTES, CHUNK_BYTES + 1] {
            let memory = arena.memory(len);
            assert!(memory.is_empty() && memory.capacity() >= len, "{len}");
            memory.put_bytes(7, len);
            assert_eq!(memory.split().freeze(), vec![7; len]);
        }
        assert_eq!((arena.allocated(), arena.alone()), (1, 1));
    }

    #[test]
    fn frames_outside_chunks_do_not_use_up_chunks() {
        let mut arena = Arena::default();
        for alone in 0..3 {
            let kept: Vec<Bytes> = (0..MOST_CHUNKS)
                .map(|_| {
                    let memory = arena.memory(CHUNK_BYTES);
                    memory.put_bytes(7, CHUNK_BYTES);
                    memory.split().freeze()
                })
                .collect();
            assert_eq!(arena.alone(), alone, "each has a chunk");
            arena.memory(10).put_u8(7);
            assert_eq!(arena.alone(), alone + 1, "there is none for this one");
            drop(kept);
        }
    }

    #[test]
    #[should_panic(expected = "the start of the room")]
    fn bytes_outside_the_buffer_are_refused() {
        static ELSEWHERE: [u8; 100] = [0; 100];
        let _ = Arena::default().fill(100, |_| Ok(&ELSEWHERE));
    }

    #[test]
    #[should_panic(expected = "the start of the room")]
    fn bytes_in_the_middle_of_the_buffer_are_refused() {
        let _ = Arena::default().fill(100, |room| Ok(room[50..].write_copy_of_slice(&[7; 50])));
    }
}

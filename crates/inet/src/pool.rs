//! Memory for received frames that is used again and again. A segment's data stays part of its frame until the application
//! has read it, so a buffer is free only when nothing refers to it any more.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// A pool of equal buffers, each of which holds many frames one after the other.
///
/// Buffers are used in turn. When the oldest is still referred to, frames get memory of their own until it is free: that
/// costs allocations, which are counted, but no frame is lost to a slow reader.
#[derive(Debug)]
pub struct FramePool {
    /// The one being filled, and those that wait for their turn, oldest first.
    current: BytesMut,
    others: VecDeque<BytesMut>,
    buffer_len: usize,
    allocated: u64,
}

impl FramePool {
    /// A pool of `buffers` buffers (at least two) of `buffer_len` bytes each, which should hold dozens of frames.
    pub fn new(buffers: usize, buffer_len: usize) -> Self {
        let buffer = || BytesMut::with_capacity(buffer_len);
        Self {
            current: buffer(),
            others: (1..buffers.max(2)).map(|_| buffer()).collect(),
            buffer_len,
            allocated: 0,
        }
    }

    /// Frames that found no free buffer and got memory of their own.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// A frame of at most `most_len` bytes. `fill` writes it into the memory it is given, and says how long it is.
    pub fn fill(&mut self, most_len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Bytes {
        let mut frame = self.room(most_len);
        frame.resize(most_len, 0);
        let len = fill(&mut frame).min(most_len);
        frame.truncate(len);
        self.take_back(frame, len)
    }

    /// A copy of `bytes`.
    pub fn copy_of(&mut self, bytes: &[u8]) -> Bytes {
        let mut frame = self.room(bytes.len());
        frame.extend_from_slice(bytes);
        self.take_back(frame, bytes.len())
    }

    /// An empty buffer with room for `len` bytes: the rest of the current one, the next one, or new memory.
    fn room(&mut self, len: usize) -> BytesMut {
        if self.current.capacity() - self.current.len() >= len || self.turn(len) {
            return std::mem::take(&mut self.current);
        }
        self.allocated += 1;
        BytesMut::with_capacity(len)
    }

    /// Goes on to the oldest buffer if nothing refers to it.
    fn turn(&mut self, len: usize) -> bool {
        if len > self.buffer_len {
            return false;
        }
        let full = std::mem::take(&mut self.current);
        self.others.push_back(full);
        let oldest = self.others.pop_front();
        self.current = oldest.expect("a pool has at least two buffers");
        self.current.try_reclaim(self.buffer_len)
    }

    /// Cuts the frame off; the rest of its buffer is for the next one.
    fn take_back(&mut self, mut buffer: BytesMut, len: usize) -> Bytes {
        let frame = buffer.split_to(len).freeze();
        if self.current.capacity() == 0 {
            self.current = buffer;
        }
        frame
    }
}

//! Memory for received frames that is used again and again. A segment's data stays part of its frame until the application
//! has read it, so a buffer is free only when nothing refers to it any more.

use bytes::{Bytes, BytesMut};

/// A pool of equal buffers, each of which holds many frames one after the other.
///
/// Of the buffers that nothing refers to, the one used last is taken first: it is still in the cache. When there is none,
/// frames get memory of their own until one is free: that costs allocations, which are counted, but no frame is lost to a
/// slow reader.
#[derive(Debug)]
pub struct FramePool {
    current: BytesMut,
    /// Those used before it, most recent last.
    others: Vec<BytesMut>,
    buffer_len: usize,
    allocated: u64,
}

impl FramePool {
    /// A pool of `buffers` buffers (at least two) of `buffer_len` bytes each, which should hold dozens of frames.
    pub fn new(buffers: usize, buffer_len: usize) -> Self {
        let buffer = || {
            let mut buffer = BytesMut::zeroed(buffer_len);
            // The count of references, which is made at the first cut, is there before the first frame.
            drop(buffer.split());
            buffer
        };
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
        self.place(most_len, |buffer| {
            buffer.resize(most_len, 0);
            let len = fill(buffer).min(most_len);
            buffer.truncate(len);
        })
    }

    /// A frame of at most `most_len` bytes that `append` appends to the memory it is given; it says whether it did. For frames
    /// that stay in memory: their receiver gets them as they were written, without a copy.
    pub fn append_with(
        &mut self,
        most_len: usize,
        append: impl FnOnce(&mut BytesMut) -> bool,
    ) -> Option<Bytes> {
        if self.current.capacity() >= most_len || self.turn(most_len) {
            return append(&mut self.current).then(|| self.current.split().freeze());
        }
        let mut own = BytesMut::with_capacity(most_len);
        append(&mut own).then(|| {
            self.allocated += 1;
            own.freeze()
        })
    }

    /// Memory that has room for `least_len` bytes, for frames that are appended one behind the other: cut each off with
    /// `split`, or all at once. If no buffer is free there is a new one in place of one that is not.
    pub fn memory(&mut self, least_len: usize) -> &mut BytesMut {
        if self.current.capacity() < least_len && !self.turn(least_len) {
            self.allocated += 1;
            self.current = BytesMut::with_capacity(self.buffer_len.max(least_len));
        }
        &mut self.current
    }

    /// A copy of `bytes`.
    pub fn copy_of(&mut self, bytes: &[u8]) -> Bytes {
        self.place(bytes.len(), |buffer| buffer.extend_from_slice(bytes))
    }

    /// Writes a frame of at most `most_len` bytes into a buffer and cuts it off.
    fn place(&mut self, most_len: usize, write: impl FnOnce(&mut BytesMut)) -> Bytes {
        if self.current.capacity() >= most_len || self.turn(most_len) {
            write(&mut self.current);
            return self.current.split().freeze();
        }
        self.allocated += 1;
        let mut own = BytesMut::with_capacity(most_len);
        write(&mut own);
        own.freeze()
    }

    /// Goes on to a buffer that nothing refers to, if there is one.
    fn turn(&mut self, most_len: usize) -> bool {
        if most_len > self.buffer_len {
            return false;
        }
        if self.current.try_reclaim(self.buffer_len) {
            return true;
        }
        let reclaims = |buffer: &mut BytesMut| buffer.try_reclaim(self.buffer_len);
        let Some(free) = self.others.iter_mut().rposition(reclaims) else {
            return false;
        };
        let next = self.others.remove(free);
        self.others.push(std::mem::replace(&mut self.current, next));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_what_was_written() {
        let mut pool = FramePool::new(2, 100);
        let first = pool.copy_of(b"first");
        let second = pool.fill(50, |memory| {
            memory[..6].copy_from_slice(b"second");
            6
        });
        // More than a buffer holds, and no more than there was room for.
        let third = pool.append_with(50, |memory| {
            memory.extend_from_slice(b"third");
            true
        });
        assert_eq!(third.as_deref(), Some(&b"third"[..]));
        assert_eq!(pool.append_with(50, |_| false), None);
        let large = pool.copy_of(&[7; 200]);
        let overrun = pool.fill(3, |_| 10);
        assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"second"[..]));
        assert_eq!((&large[..], &overrun[..]), (&[7; 200][..], &[0; 3][..]));
        assert_eq!(pool.allocated(), 1);
    }

    #[test]
    fn a_buffer_is_used_again_once_nothing_refers_to_it() {
        let mut pool = FramePool::new(2, 100);
        for _ in 0..100 {
            drop(pool.copy_of(&[1; 40]));
        }
        assert_eq!(pool.allocated(), 0);
        // Two frames fit into each of two buffers, the next ones into none.
        let mut kept: Vec<Bytes> = (0..6).map(|at| pool.copy_of(&[at; 40])).collect();
        let without = pool.allocated();
        assert!(
            (1..=2).contains(&without),
            "{without} frames found no buffer"
        );
        assert!(
            kept.iter()
                .enumerate()
                .all(|(at, frame)| frame[..] == [at as u8; 40])
        );
        kept.clear();
        for _ in 0..100 {
            drop(pool.copy_of(&[1; 40]));
        }
        assert_eq!(pool.allocated(), without);
    }
}

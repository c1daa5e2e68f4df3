//! Frames that are waiting to be sent.

/// Frames that are to be sent, one after the other in a reusable buffer.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Offsets of the ends of the frames.
    ends: Vec<usize>,
    /// Number of frames that have been sent.
    sent: usize,
}

impl Batch {
    /// Returns the number of waiting frames.
    pub fn len(&self) -> usize {
        self.ends.len() - self.sent
    }

    /// Returns whether no frame is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes in the waiting frames.
    pub fn waiting_bytes(&self) -> usize {
        self.bytes.len() - self.start_of(self.sent)
    }

    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Lets `write` append one frame. `write` returns whether it did, and so does this function.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        self.forget_sent();
        let start = self.bytes.len();
        let written = write(&mut self.bytes);
        if written {
            debug_assert!(self.bytes.len() > start, "a frame has bytes");
            self.ends.push(self.bytes.len());
        } else {
            self.bytes.truncate(start);
        }
        written
    }

    /// Lets `write` append frames; `write` calls its second argument after each frame.
    pub fn push_many<R>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>, &mut dyn FnMut(&mut Vec<u8>)) -> R,
    ) -> R {
        self.forget_sent();
        let ends = &mut self.ends;
        write(&mut self.bytes, &mut |bytes| ends.push(bytes.len()))
    }

    /// Appends a copy of `frame`.
    pub fn push(&mut self, frame: &[u8]) {
        self.push_with(|bytes| {
            bytes.extend_from_slice(frame);
            true
        });
    }

    /// Returns the waiting frames, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.iter_from(0)
    }

    /// Returns the waiting frames without the oldest `skipped`.
    pub fn iter_from(&self, skipped: usize) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (self.sent + skipped..self.ends.len())
            .map(|index| &self.bytes[self.start_of(index)..self.ends[index]])
    }

    /// Returns the last `count` frames that were sent. They are available until the next frame is appended.
    pub fn last_sent(&self, count: usize) -> impl Iterator<Item = &[u8]> + '_ {
        let first = self.sent.saturating_sub(count);
        (first..self.sent).map(|index| &self.bytes[self.start_of(index)..self.ends[index]])
    }

    /// Marks the oldest `count` frames as sent.
    pub fn sent(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "no more is sent than waits");
        self.sent += count;
    }

    /// Empties the buffer if all frames have been sent.
    fn forget_sent(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.ends.clear();
            self.sent = 0;
        }
    }

    /// Makes the last `count` sent frames wait again, each modified by `change`: a frame that is sent repeatedly is built only once. This
    /// must happen before the next frame is appended to a batch in which nothing waits, since that discards sent frames.
    ///
    /// # Panics
    /// Panics if fewer frames were sent.
    pub fn replay(&mut self, count: usize, mut change: impl FnMut(&mut [u8])) {
        let first = self.sent.checked_sub(count);
        self.sent = first.expect("no more than was sent is sent again");
        for index in self.sent..self.sent + count {
            let start = self.start_of(index);
            change(&mut self.bytes[start..self.ends[index]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_in_order_and_space_is_reused() {
        let mut batch = Batch::default();
        for round in 0..100_u8 {
            batch.push(&[round; 10]);
            batch.push(&[round; 20]);
            assert!(!batch.push_with(|bytes| {
                bytes.push(1);
                false
            }));
            assert_eq!(batch.iter().map(<[u8]>::len).collect::<Vec<_>>(), [10, 20]);
            batch.sent(1);
            assert_eq!(batch.iter().next(), Some(&[round; 20][..]));
            batch.sent(1);
            assert!(batch.is_empty());
            let sent: Vec<_> = batch.last_sent(2).map(<[u8]>::len).collect();
            assert_eq!(sent, [10, 20]);
        }
        assert!(batch.bytes.capacity() < 100);
    }

    #[test]
    fn sent_frames_can_be_sent_again_until_new_ones_are_added() {
        let mut batch = Batch::default();
        (0..3).for_each(|number| batch.push(&[number; 4]));
        batch.sent(3);
        assert!(batch.is_empty());
        let mut sequence = 7;
        batch.replay(2, |frame| {
            frame[0] = sequence;
            sequence += 1;
        });
        let waiting: Vec<&[u8]> = batch.iter().collect();
        assert_eq!(waiting, [[7, 1, 1, 1], [8, 2, 2, 2]]);
        assert_eq!(batch.waiting_bytes(), 8);
        batch.sent(2);
        batch.push(&[9]);
        assert_eq!(batch.iter().collect::<Vec<_>>(), [[9]], "these are gone");
    }
}

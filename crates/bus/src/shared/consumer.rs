//! The consumer of a ring.

use super::atomic::Ordering;
use super::memory::{RingIndices, SharedMemory, SharedRing};
use crate::descriptor::{Descriptor, Malformed, whole_entries};
use crate::link::Violation;

/// Number of slots that are returned at a time, so that the other side can refill them while the rest of a transfer is copied. Without
/// this, the two sides would take turns if transfers are as long as the ring.
const AT_ONCE: usize = 32;

/// Private state of the consumer.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    /// Number of descriptors taken since the start.
    consumed: u32,
    /// The other side's count of descriptors put, when last read.
    produced_seen: u32,
}

impl Consumer {
    /// Starts as if this many descriptors had already passed through the ring.
    #[cfg(all(test, not(loom)))]
    pub(super) fn start_at(&mut self, count: u32) {
        (self.consumed, self.produced_seen) = (count, count);
    }

    /// Appends whole entries, at most `most` descriptors unless the first entry is longer, and returns their slots to the producer, several
    /// at a time. Returns the number of descriptors taken.
    pub(super) fn get(
        &mut self,
        ring: &SharedRing<'_, impl SharedMemory>,
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<usize, Violation> {
        if self.waiting() < most {
            self.look(ring.indices(), ring.depth())?;
        }
        if self.waiting() == 0 {
            return Ok(0);
        }
        let before = descriptors.len();
        let taken = self.take_entries(ring, most, descriptors);
        Ok(taken.inspect_err(|_| descriptors.truncate(before))?)
    }

    /// Returns whether the ring has entries.
    pub(super) fn has_entries(
        &mut self,
        indices: &RingIndices,
        depth: usize,
    ) -> Result<bool, Violation> {
        self.look(indices, depth)?;
        Ok(self.waiting() > 0)
    }

    /// Takes entries that are known to wait. There must be at least one.
    fn take_entries(
        &mut self,
        ring: &SharedRing<'_, impl SharedMemory>,
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<usize, Malformed> {
        let (begin, waiting, before) = (self.consumed, self.waiting(), descriptors.len());
        let mut most = most.clamp(1, waiting);
        let (mut copied, mut whole) = (0, 0);
        while copied < most {
            let len = AT_ONCE.min(most - copied);
            ring.read(begin.wrapping_add(copied as u32), len, descriptors);
            copied += len;
            // From here on only the copy counts, whatever happens to the original.
            if whole == 0 {
                let first = 1 + descriptors[before].continuations();
                most = most.max(first).min(waiting);
            }
            let left = &descriptors[before + whole..];
            whole += whole_entries(left, left.len());
            self.give_back(ring.indices(), begin.wrapping_add(whole as u32));
        }
        if let Some(head) = descriptors.get(before + whole)
            && (most == waiting || whole == 0)
        {
            // The producer must put whole entries.
            let missing = whole + 1 + head.continuations() - most;
            return Err(Malformed::Truncated { missing });
        }
        descriptors.truncate(before + whole);
        Ok(whole)
    }

    /// Tells the producer that it may reuse all slots before `consumed`.
    fn give_back(&mut self, indices: &RingIndices, consumed: u32) {
        self.consumed = consumed;
        // Release: the slots are read before they are returned.
        indices.consumed.0.store(consumed, Ordering::Release);
    }

    /// Returns the number of descriptors known to wait.
    pub(super) fn waiting(&self) -> usize {
        self.produced_seen.wrapping_sub(self.consumed) as usize
    }

    /// Reads the producer's index and checks it. The producer cannot take descriptors back, nor put more than fit.
    fn look(&mut self, indices: &RingIndices, depth: usize) -> Result<(), Violation> {
        // Acquire: the slots were written before the index.
        let produced = indices.produced.0.load(Ordering::Acquire);
        let claimed = produced.wrapping_sub(self.consumed);
        if claimed as usize > depth || (claimed as usize) < self.waiting() {
            let depth = depth as u32;
            return Err(Violation::Index { claimed, depth });
        }
        self.produced_seen = produced;
        Ok(())
    }
}

//! The side of a ring that empties it.

use super::atomic::Ordering;
use super::memory::{RingIndices, SharedMemory, SharedRing};
use crate::descriptor::{Descriptor, Malformed, whole_entries};
use crate::link::Violation;

/// Slots that are given back at a time: while the rest of a transfer is copied, the other side can fill these again. Where
/// transfers are as long as the ring, the two would take turns otherwise.
const AT_ONCE: usize = 32;

/// What the emptying side keeps to itself.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    /// Descriptors taken since the beginning.
    consumed: u32,
    /// How many the other side was last seen to have put.
    produced_seen: u32,
}

impl Consumer {
    /// Begins with a ring that so many descriptors have gone through.
    #[cfg(all(test, not(loom)))]
    pub(super) fn start_at(&mut self, count: u32) {
        (self.consumed, self.produced_seen) = (count, count);
    }

    /// Appends whole entries, at most `most` descriptors if the first entry is not longer, and gives the room back, some slots at a
    /// time. Gives how many descriptors it took.
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

    /// Whether there is something to get.
    pub(super) fn has_entries(
        &mut self,
        indices: &RingIndices,
        depth: usize,
    ) -> Result<bool, Violation> {
        self.look(indices, depth)?;
        Ok(self.waiting() > 0)
    }

    /// The same, of those that are known to wait, of which there is at least one.
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
            // From here on only the copy counts, whatever becomes of the original.
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
            // Entries are put whole.
            let missing = whole + 1 + head.continuations() - most;
            return Err(Malformed::Truncated { missing });
        }
        descriptors.truncate(before + whole);
        Ok(whole)
    }

    /// Tells the other side that it may use all slots before `consumed` again.
    fn give_back(&mut self, indices: &RingIndices, consumed: u32) {
        self.consumed = consumed;
        // Release: the slots have been read before they are given back.
        indices.consumed.0.store(consumed, Ordering::Release);
    }

    /// Descriptors that wait, as far as is known.
    pub(super) fn waiting(&self) -> usize {
        self.produced_seen.wrapping_sub(self.consumed) as usize
    }

    /// Looks how far the other side is. It cannot take back what it has put, nor have put more than there is room for.
    fn look(&mut self, indices: &RingIndices, depth: usize) -> Result<(), Violation> {
        // Acquire: what stands in the slots was written before.
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

//! The side of a ring that empties it.

use super::atomic::Ordering;
use super::memory::{RingIndices, Slot, run};
use crate::descriptor::{Descriptor, Malformed, whole_entries};
use crate::link::Violation;

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

    /// Appends whole entries, at most `most` descriptors if the first entry is not longer, and gives the room back at once. Gives
    /// how many descriptors it took.
    pub(super) fn get(
        &mut self,
        indices: &RingIndices,
        slots: &[Slot],
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<usize, Violation> {
        if self.waiting() < most {
            self.look(indices, slots.len())?;
        }
        let before = descriptors.len();
        let copied = self.copy_entries(slots, most, descriptors);
        let taken = copied.inspect_err(|_| descriptors.truncate(before))?;
        if taken > 0 {
            self.consumed = self.consumed.wrapping_add(taken as u32);
            // Release: the slots have been read before they are given back.
            indices.consumed.0.store(self.consumed, Ordering::Release);
        }
        Ok(taken)
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

    fn copy_entries(
        &self,
        slots: &[Slot],
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<usize, Malformed> {
        let (waiting, before) = (self.waiting(), descriptors.len());
        let Some(head) = run(slots, self.consumed, waiting).next() else {
            return Ok(0);
        };
        let most = most.max(1 + head.read().continuations()).min(waiting);
        descriptors.extend(run(slots, self.consumed, most).map(Slot::read));
        // From here on only the copy counts, whatever becomes of the original.
        let copied = &descriptors[before..];
        let whole = whole_entries(copied, most);
        if let Some(head) = copied.get(whole)
            && (most == waiting || whole == 0)
        {
            // Entries are put whole.
            let missing = whole + 1 + head.continuations() - most;
            return Err(Malformed::Truncated { missing });
        }
        descriptors.truncate(before + whole);
        Ok(whole)
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

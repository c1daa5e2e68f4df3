//! The side of a ring that fills it.

use super::atomic::Ordering;
use super::memory::{RingIndices, SharedMemory, SharedRing};
use crate::descriptor::{Descriptor, entries_within};
use crate::link::Violation;

/// What the filling side keeps to itself.
#[derive(Debug, Default)]
pub(super) struct Producer {
    /// Descriptors put since the beginning.
    produced: u32,
    /// Of these, how many the other side was last seen to have taken.
    consumed_seen: u32,
    /// The last put found less room than it wanted.
    short: bool,
}

impl Producer {
    /// Begins with a ring that so many descriptors have gone through.
    #[cfg(all(test, not(loom)))]
    pub(super) fn start_at(&mut self, count: u32) {
        (self.produced, self.consumed_seen) = (count, count);
    }

    /// Puts whole entries as long as there is room and tells of all of them at once. Gives how many descriptors it put.
    pub(super) fn put(
        &mut self,
        ring: &SharedRing<'_, impl SharedMemory>,
        descriptors: &[Descriptor],
    ) -> Result<usize, Violation> {
        let depth = ring.depth();
        // The other side's index is on a line that it writes to; it is looked at only when what is known of it does not do.
        if depth - self.in_ring() < descriptors.len() {
            self.look(ring.indices())?;
        }
        let room = depth - self.in_ring();
        let taken = entries_within(descriptors, room);
        if taken > 0 {
            ring.write(self.produced, &descriptors[..taken]);
            self.produced = self.produced.wrapping_add(taken as u32);
            // Release: what stands in the slots is written before.
            let produced = &ring.indices().produced.0;
            produced.store(self.produced, Ordering::Release);
        }
        self.short = taken < descriptors.len();
        Ok(taken)
    }

    /// Whether something could not be put for lack of room.
    pub(super) fn is_short(&self) -> bool {
        self.short
    }

    /// Whether there is more room than when the last put found too little.
    pub(super) fn has_more_room(&mut self, indices: &RingIndices) -> Result<bool, Violation> {
        let before = self.consumed_seen;
        self.look(indices)?;
        Ok(self.consumed_seen != before)
    }

    /// Descriptors that the other side has not taken, as far as is known.
    fn in_ring(&self) -> usize {
        self.produced.wrapping_sub(self.consumed_seen) as usize
    }

    /// Looks how far the other side is. It can only have taken what it had not before.
    fn look(&mut self, indices: &RingIndices) -> Result<(), Violation> {
        // Acquire: it has read the slots before they are written again.
        let consumed = indices.consumed.0.load(Ordering::Acquire);
        let (claimed, most) = (self.produced.wrapping_sub(consumed), self.in_ring() as u32);
        if claimed > most {
            return Err(Violation::Index {
                claimed,
                depth: most,
            });
        }
        self.consumed_seen = consumed;
        Ok(())
    }
}

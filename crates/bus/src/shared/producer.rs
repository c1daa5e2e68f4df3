//! The producer of a ring.

use super::atomic::Ordering;
use super::memory::{RingIndices, SharedMemory, SharedRing};
use crate::descriptor::{Descriptor, entries_within};
use crate::link::Violation;

/// Private state of the producer.
#[derive(Debug, Default)]
pub(super) struct Producer {
    /// Number of descriptors put since the start.
    produced: u32,
    /// The other side's count of descriptors taken, when last read.
    consumed_seen: u32,
    /// Whether the last put did not fit completely.
    short: bool,
}

impl Producer {
    /// Starts as if this many descriptors had already passed through the ring.
    #[cfg(all(test, not(loom)))]
    pub(super) fn start_at(&mut self, count: u32) {
        (self.produced, self.consumed_seen) = (count, count);
    }

    /// Puts whole entries as far as they fit, and publishes all of them at the same time. Returns the number of descriptors put.
    pub(super) fn put(
        &mut self,
        ring: &SharedRing<'_, impl SharedMemory>,
        descriptors: &[Descriptor],
    ) -> Result<usize, Violation> {
        let depth = ring.depth();
        // The consumer's index is on a cache line that the consumer writes to, so it is read only if the known value does not suffice.
        if depth - self.in_ring() < descriptors.len() {
            self.look(ring.indices())?;
        }
        let room = depth - self.in_ring();
        let taken = entries_within(descriptors, room);
        if taken > 0 {
            ring.write(self.produced, &descriptors[..taken]);
            self.produced = self.produced.wrapping_add(taken as u32);
            // Release: the slots are written before the index.
            let produced = &ring.indices().produced.0;
            produced.store(self.produced, Ordering::Release);
        }
        self.short = taken < descriptors.len();
        Ok(taken)
    }

    /// Returns whether the last put did not fit completely.
    pub(super) fn is_short(&self) -> bool {
        self.short
    }

    /// Returns whether the consumer has taken entries since the last put.
    pub(super) fn has_more_room(&mut self, indices: &RingIndices) -> Result<bool, Violation> {
        let before = self.consumed_seen;
        self.look(indices)?;
        Ok(self.consumed_seen != before)
    }

    /// Returns the number of descriptors that the consumer is not known to have taken.
    fn in_ring(&self) -> usize {
        self.produced.wrapping_sub(self.consumed_seen) as usize
    }

    /// Reads the consumer's index and checks it. The consumer can only have taken more descriptors than before.
    fn look(&mut self, indices: &RingIndices) -> Result<(), Violation> {
        // Acquire: the consumer has read the slots before they are overwritten.
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

//! A bounded queue of descriptors.

use crate::Fifo;

/// A bounded first-in, first-out queue. It never grows beyond its capacity: what does not fit is given back.
///
/// ```
/// use baton_bus::Ring;
///
/// let mut ring = Ring::new(1);
/// assert_eq!(ring.try_push('a'), Ok(()));
/// assert_eq!(ring.try_push('b'), Err('b'));
/// assert_eq!(ring.pop(), Some('a'));
/// ```
#[derive(Clone, Debug)]
pub struct Ring<T> {
    entries: Fifo<T>,
    capacity: usize,
    high_water: usize,
    refused: u64,
}

impl<T> Ring<T> {
    /// An empty ring for `capacity` entries, at least one. Memory is taken as it fills for the first time.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring holds at least one entry");
        Self {
            entries: Fifo::new(),
            capacity,
            high_water: 0,
            refused: 0,
        }
    }

    /// Appends `entry`.
    ///
    /// # Errors
    /// Gives the entry back if the ring is full.
    pub fn try_push(&mut self, entry: T) -> Result<(), T> {
        if self.is_full() {
            self.refused += 1;
            return Err(entry);
        }
        self.entries.push(entry);
        self.high_water = self.high_water.max(self.entries.len());
        Ok(())
    }

    /// Takes the oldest entry.
    pub fn pop(&mut self) -> Option<T> {
        self.entries.pop()
    }

    /// Takes the oldest `count` entries, of which there are so many.
    pub fn take(&mut self, count: usize) -> impl Iterator<Item = T> {
        self.entries.take(count)
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The oldest entry.
    pub fn front(&self) -> Option<&T> {
        self.entries.front()
    }

    /// All entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    /// Entries waiting.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the next entry will be refused.
    pub fn is_full(&self) -> bool {
        self.entries.len() == self.capacity
    }

    /// The most entries it holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Entries for which there is room.
    pub fn free(&self) -> usize {
        self.capacity - self.entries.len()
    }

    /// The most entries it has held at one time.
    pub fn high_water(&self) -> usize {
        self.high_water
    }

    /// Entries refused because it was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn full_ring_gives_the_entry_back_and_counts_it() {
        let mut ring = Ring::new(2);
        assert_eq!(ring.try_push(1), Ok(()));
        assert_eq!(ring.try_push(2), Ok(()));
        assert_eq!(ring.try_push(3), Err(3));
        assert!(ring.is_full());
        assert_eq!(
            (ring.len(), ring.free(), ring.high_water(), ring.refused()),
            (2, 0, 2, 1)
        );
        assert_eq!(ring.front(), Some(&1));
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            (ring.pop(), ring.pop(), ring.pop()),
            (Some(1), Some(2), None)
        );
        assert!(ring.is_empty());
        assert_eq!(ring.high_water(), 2);
    }

    proptest! {
        #[test]
        fn accepted_entries_come_out_once_and_in_order(capacity in 1_usize..8, pushes in prop::collection::vec(any::<bool>(), 0..200)) {
            let mut ring = Ring::new(capacity);
            let (mut accepted, mut popped) = (Vec::new(), Vec::new());
            for (number, push) in pushes.into_iter().enumerate() {
                if push {
                    let full = ring.len() == capacity;
                    prop_assert_eq!(ring.try_push(number).is_err(), full);
                    if !full {
                        accepted.push(number);
                    }
                } else {
                    popped.extend(ring.pop());
                }
                prop_assert!(ring.len() <= capacity && ring.len() <= ring.high_water());
            }
            popped.extend(ring.take(ring.len()));
            prop_assert!(ring.is_empty());
            prop_assert_eq!(popped, accepted);
        }
    }
}

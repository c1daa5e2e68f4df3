//! A bounded queue of descriptors.

/// Number of taken entries from which on they are removed from memory, unless more entries wait.
const MOST_TAKEN: usize = 32;

/// A bounded first-in, first-out queue whose entries are contiguous in memory. The queue rejects entries that exceed its capacity.
///
/// ```
/// use baton_bus::Ring;
///
/// let mut ring = Ring::new(2);
/// assert!(ring.try_extend(&['a', 'b']));
/// assert!(!ring.try_extend(&['c']));
/// assert_eq!(ring.as_slice(), ['a', 'b']);
/// ring.drop_front(1);
/// assert_eq!(ring.front(), Some(&'b'));
/// ```
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// Entries already taken, which are removed from time to time, followed by the waiting entries.
    entries: Vec<T>,
    taken: usize,
    capacity: usize,
}

impl<T: Copy> Ring<T> {
    /// Creates an empty ring for `capacity` entries, at least one. Memory is allocated as the ring first fills.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring holds at least one entry");
        Self {
            entries: Vec::new(),
            taken: 0,
            capacity,
        }
    }

    /// Appends all of `entries`, or returns false and appends none if they do not all fit.
    #[inline]
    pub fn try_extend(&mut self, entries: &[T]) -> bool {
        if self.free() < entries.len() {
            return false;
        }
        // At most one waiting entry is moved for each entry that was taken.
        if self.taken >= MOST_TAKEN && self.taken >= self.len() {
            self.entries.drain(..self.taken);
            self.taken = 0;
        }
        match entries {
            // Usually there is one entry.
            [entry] => self.entries.push(*entry),
            all => self.entries.extend_from_slice(all),
        }
        true
    }

    /// Removes the oldest `count` entries. The ring must hold that many.
    #[inline]
    pub fn drop_front(&mut self, count: usize) {
        self.taken += count;
        debug_assert!(self.taken <= self.entries.len(), "so many wait");
        if self.taken == self.entries.len() {
            self.clear();
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.taken = 0;
    }

    /// Returns the oldest entry.
    pub fn front(&self) -> Option<&T> {
        self.entries.get(self.taken)
    }

    /// Returns all entries, oldest first.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.entries[self.taken..]
    }

    /// Returns the number of waiting entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.taken
    }

    /// Returns whether no entry waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the maximum number of entries.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of entries for which there is space.
    #[inline]
    pub fn free(&self) -> usize {
        self.capacity - self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn entries_are_put_whole_and_got_in_order(
            capacity in 1_usize..50,
            steps in prop::collection::vec((any::<bool>(), 0_usize..20), 0..200),
        ) {
            let mut ring = Ring::new(capacity);
            let (mut model, mut next) = (VecDeque::new(), 0);
            for (push, count) in steps {
                if push {
                    let entries: Vec<usize> = (next..next + count).collect();
                    let fits = model.len() + count <= capacity;
                    prop_assert_eq!(ring.try_extend(&entries), fits);
                    if fits {
                        model.extend(entries);
                        next += count;
                    }
                } else {
                    let count = count.min(model.len());
                    model.drain(..count);
                    ring.drop_front(count);
                }
                prop_assert!(ring.as_slice().iter().eq(&model));
                prop_assert_eq!((ring.front(), ring.is_empty()), (model.front(), model.is_empty()));
                prop_assert_eq!((ring.len(), ring.free()), (model.len(), capacity - model.len()));
                // After the last append, `taken` was less than `MOST_TAKEN` or the number of waiting entries. At most `capacity` entries
                // were taken since.
                let bound = MOST_TAKEN.max(capacity) + capacity;
                prop_assert!(ring.taken <= bound, "its memory is bounded, too");
            }
        }
    }
}

//! A bounded queue of descriptors.

/// Entries that were taken and are not forgotten, while at least as many wait.
const MOST_TAKEN: usize = 32;

/// A bounded first-in, first-out queue whose entries lie one behind the other. It never grows beyond its capacity: what does not fit is
/// given back.
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
    /// Those that were taken, which are forgotten from time to time, and those that wait.
    entries: Vec<T>,
    taken: usize,
    capacity: usize,
}

impl<T: Copy> Ring<T> {
    /// An empty ring for `capacity` entries, at least one. Memory is taken as it fills for the first time.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring holds at least one entry");
        Self {
            entries: Vec::new(),
            taken: 0,
            capacity,
        }
    }

    /// Appends all of `entries`; false, and none of them, if there is no room for that.
    #[inline]
    pub fn try_extend(&mut self, entries: &[T]) -> bool {
        if self.free() < entries.len() {
            return false;
        }
        // Each that was taken makes way for at most one that waits to be moved.
        if self.taken >= MOST_TAKEN && self.taken >= self.len() {
            self.entries.drain(..self.taken);
            self.taken = 0;
        }
        match entries {
            // Mostly it is one.
            [entry] => self.entries.push(*entry),
            all => self.entries.extend_from_slice(all),
        }
        true
    }

    /// Drops the oldest `count` entries, of which there are so many.
    #[inline]
    pub fn drop_front(&mut self, count: usize) {
        self.taken += count;
        debug_assert!(self.taken <= self.entries.len(), "so many wait");
        if self.taken == self.entries.len() {
            self.clear();
        }
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.taken = 0;
    }

    /// The oldest entry.
    pub fn front(&self) -> Option<&T> {
        self.entries.get(self.taken)
    }

    /// All entries, oldest first.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.entries[self.taken..]
    }

    /// Entries waiting.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.taken
    }

    /// Whether no entry waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most entries it holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Entries for which there is room.
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
        fn entries_go_in_whole_and_come_out_in_order(
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
                // When an entry was appended last it was less than one of these, and no more was taken since than waited then.
                let bound = MOST_TAKEN.max(capacity) + capacity;
                prop_assert!(ring.taken <= bound, "its memory is bounded, too");
            }
        }
    }
}

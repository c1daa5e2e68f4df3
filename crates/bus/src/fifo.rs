//! A queue that touches few cache lines.

use std::collections::VecDeque;
use std::ops::{Deref, Index, IndexMut};

/// A first-in, first-out queue that starts again at the front of its memory whenever it becomes empty. A plain [`VecDeque`] cycles through
/// all memory it has ever needed, so that its next entry is never in the processor's cache, however few entries there are.
///
/// ```
/// use baton_bus::Fifo;
///
/// let mut queue = Fifo::new();
/// queue.push('a');
/// queue.push('b');
/// assert_eq!((queue.pop(), queue.front(), queue.len()), (Some('a'), Some(&'b'), 1));
/// ```
#[derive(Clone, Debug)]
pub struct Fifo<T>(VecDeque<T>);

impl<T> Fifo<T> {
    /// Creates an empty queue, which allocates memory as it grows.
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Appends `entry`.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.0.is_empty() {
            self.0.clear();
        }
        self.0.push_back(entry);
    }

    /// Removes and returns the oldest entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    /// Removes and returns the oldest `count` entries. The queue must hold that many.
    pub fn take(&mut self, count: usize) -> impl Iterator<Item = T> {
        self.0.drain(..count)
    }

    /// Returns the oldest entry mutably.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.0.front_mut()
    }

    /// Returns all entries mutably, oldest first.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Gives read access to the entries.
impl<T> Deref for Fifo<T> {
    type Target = VecDeque<T>;
    #[inline]
    fn deref(&self) -> &VecDeque<T> {
        &self.0
    }
}

impl<T> IndexMut<usize> for Fifo<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.0[index]
    }
}

impl<T> Index<usize> for Fifo<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_queue_stays_where_it_is() {
        let mut queue = Fifo::new();
        (0..9).for_each(|number| queue.push(number));
        let first = &raw const queue[0];
        assert!(queue.take(9).eq(0..9));
        for number in 0..100 {
            queue.push(number);
            assert_eq!(&raw const queue[0], first);
            assert_eq!(queue.pop(), Some(number));
        }
        assert_eq!(queue.pop(), None);
    }
}

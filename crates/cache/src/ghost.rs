//! Names of blocks that are not, or no longer, in a cache.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The most recently added names, at most a fixed number.
#[derive(Clone, Debug)]
pub struct Ghosts {
    /// Names in order of arrival, with the number of the arrival. Entries that [`Self::take`] has removed stay until they are the oldest.
    queue: VecDeque<(u64, u64)>,
    /// The number of the latest arrival of each name that is present.
    arrivals: FxHashMap<u64, u64>,
    limit: usize,
    next: u64,
}

impl Ghosts {
    /// Creates an empty set of at most `limit` names.
    pub fn new(limit: u32) -> Self {
        Self {
            queue: VecDeque::new(),
            arrivals: FxHashMap::default(),
            limit: limit as usize,
            next: 0,
        }
    }

    /// Adds `key`, and removes the oldest name if the limit is exceeded. A name that is already present becomes the newest.
    pub fn add(&mut self, key: u64) {
        if self.limit == 0 {
            return;
        }
        self.queue.push_back((key, self.next));
        self.arrivals.insert(key, self.next);
        self.next += 1;
        // Removed names may leave the queue longer than the set of names, so the queue is limited, too.
        while self.queue.len() > self.limit {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((key, arrival)) = self.queue.pop_front()
            && self.arrivals.get(&key) == Some(&arrival)
        {
            self.arrivals.remove(&key);
        }
    }

    /// Removes `key`. Returns whether it was present.
    pub fn take(&mut self, key: u64) -> bool {
        self.arrivals.remove(&key).is_some()
    }

    /// Asserts the limit.
    ///
    /// # Panics
    /// Panics if the limit is exceeded.
    pub fn check(&self) {
        assert!(self.queue.len() <= self.limit, "too many ghosts");
        assert!(
            self.arrivals.len() <= self.queue.len(),
            "a ghost entry has no place in the queue"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ghost_is_forgotten_first() {
        let mut ghosts = Ghosts::new(2);
        for key in [1, 2, 3] {
            ghosts.add(key);
            ghosts.check();
        }
        assert!(!ghosts.take(1));
        assert!(ghosts.take(3) && ghosts.take(2));
        assert!(!ghosts.take(2), "a name is taken once");
    }

    #[test]
    fn a_ghost_that_is_added_again_becomes_the_newest() {
        let mut ghosts = Ghosts::new(3);
        for key in [1, 2, 1, 3] {
            ghosts.add(key);
        }
        ghosts.add(4);
        assert!(!ghosts.take(2));
        assert!(ghosts.take(1));
    }

    #[test]
    fn a_ghost_list_without_space_remembers_nothing() {
        let mut ghosts = Ghosts::new(0);
        ghosts.add(1);
        assert!(!ghosts.take(1));
        ghosts.check();
    }
}

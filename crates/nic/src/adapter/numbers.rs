//! Maps the socket numbers that a host chooses to slots.

use std::collections::BTreeMap;

/// Marks a free number.
const NONE: u32 = u32::MAX;

/// Slots of sockets by the numbers that the host chose. Small numbers, which hosts normally use, are looked up in an array, all others in a
/// tree whose depth a host cannot increase by its choice of numbers.
#[derive(Debug)]
pub(super) struct Numbers {
    dense: Vec<u32>,
    sparse: BTreeMap<u32, u32>,
    most_dense: u32,
}

impl Numbers {
    /// Creates an empty map. Numbers below `most_dense` are small.
    pub(super) fn new(most_dense: u32) -> Self {
        Self {
            dense: Vec::new(),
            sparse: BTreeMap::new(),
            most_dense,
        }
    }

    /// Returns the slot of a number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<u32> {
        match self.dense.get(number as usize) {
            Some(&slot) => (slot != NONE).then_some(slot),
            None => self.sparse.get(&number).copied(),
        }
    }

    /// Assigns a free number to the socket in `slot`.
    pub(super) fn insert(&mut self, number: u32, slot: u32) {
        debug_assert_eq!(self.get(number), None, "the number is free");
        if number >= self.most_dense {
            self.sparse.insert(number, slot);
            return;
        }
        let index = number as usize;
        if index >= self.dense.len() {
            let len = (index + 1).next_power_of_two();
            self.dense.resize(len.min(self.most_dense as usize), NONE);
        }
        self.dense[index] = slot;
    }

    /// Frees a number.
    pub(super) fn remove(&mut self, number: u32) {
        match self.dense.get_mut(number as usize) {
            Some(slot) => *slot = NONE,
            None => {
                self.sparse.remove(&number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_can_be_inserted_and_removed() {
        let mut numbers = Numbers::new(8);
        let chosen = [0, 7, 8, 1_000_000, u32::MAX];
        for (slot, &number) in (0..).zip(&chosen) {
            numbers.insert(number, slot);
        }
        for (slot, &number) in (0..).zip(&chosen) {
            assert_eq!(numbers.get(number), Some(slot));
        }
        assert_eq!(numbers.dense.len(), 8, "the array has a limit");
        for &number in &chosen {
            numbers.remove(number);
            assert_eq!(numbers.get(number), None);
        }
        assert!(numbers.sparse.is_empty());
    }
}

//! Queues that share one pool of entries: many short queues, none of which allocates once the pool has grown.

use slab::Slab;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// An entry and the next one of its chain.
#[derive(Debug)]
struct Link<T> {
    item: T,
    next: u32,
}

/// Memory of the entries of all chains of one kind. It grows to the most there were at one time and never shrinks.
#[derive(Debug)]
pub(super) struct Pool<T> {
    links: Slab<Link<T>>,
}

/// A first-in, first-out queue whose entries are in a [`Pool`], always the same one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            len: 0,
        }
    }
}

impl Chain {
    /// Entries.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Pool<T> {
    /// Without entries.
    pub(super) fn new() -> Self {
        Self { links: Slab::new() }
    }

    /// Entries of all chains.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// Appends `item`.
    pub(super) fn push(&mut self, chain: &mut Chain, item: T) {
        let key = self.links.insert(Link { item, next: NONE }) as u32;
        self.append(chain, key);
    }

    /// Takes the oldest entry.
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<T> {
        let key = self.unlink_front(chain)?;
        Some(self.links.remove(key as usize).item)
    }

    /// Moves the oldest entry of one chain to the end of another; gives its key, which it keeps while it is in the pool.
    pub(super) fn move_front(&mut self, from: &mut Chain, to: &mut Chain) -> Option<u32> {
        let key = self.unlink_front(from)?;
        self.append(to, key);
        Some(key)
    }

    /// The oldest entry.
    pub(super) fn front(&self, chain: &Chain) -> Option<&T> {
        self.links.get(chain.head as usize).map(|link| &link.item)
    }

    /// The oldest entry, to be changed.
    pub(super) fn front_mut(&mut self, chain: &Chain) -> Option<&mut T> {
        let link = self.links.get_mut(chain.head as usize);
        link.map(|link| &mut link.item)
    }

    /// The entry of this key.
    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.links.get_mut(key as usize).map(|link| &mut link.item)
    }

    /// All entries of a chain, oldest first.
    pub(super) fn iter<'a>(&'a self, chain: &Chain) -> impl Iterator<Item = &'a T> {
        let mut next = chain.head;
        std::iter::from_fn(move || {
            let link = self.links.get(next as usize)?;
            next = link.next;
            Some(&link.item)
        })
    }

    /// Takes the oldest entry for which `wanted` holds. Looks through the chain, which is short.
    pub(super) fn take(
        &mut self,
        chain: &mut Chain,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Option<T> {
        let (mut before, mut key) = (NONE, chain.head);
        while let Some(link) = self.links.get(key as usize) {
            if !wanted(&link.item) {
                (before, key) = (key, link.next);
                continue;
            }
            let Link { item, next } = self.links.remove(key as usize);
            match self.links.get_mut(before as usize) {
                Some(link) => link.next = next,
                None => chain.head = next,
            }
            if next == NONE {
                chain.tail = before;
            }
            chain.len -= 1;
            return Some(item);
        }
        None
    }

    /// Drops all entries of a chain.
    pub(super) fn clear(&mut self, chain: &mut Chain) {
        while self.pop(chain).is_some() {}
    }

    fn append(&mut self, chain: &mut Chain, key: u32) {
        match self.links.get_mut(chain.tail as usize) {
            Some(last) => last.next = key,
            None => chain.head = key,
        }
        chain.tail = key;
        chain.len += 1;
    }

    /// Takes the first entry out of its chain; it stays in the pool.
    fn unlink_front(&mut self, chain: &mut Chain) -> Option<u32> {
        let key = chain.head;
        let link = self.links.get_mut(key as usize)?;
        chain.head = std::mem::replace(&mut link.next, NONE);
        if chain.head == NONE {
            chain.tail = NONE;
        }
        chain.len -= 1;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Two chains of one pool behave as two queues of their own.
        #[test]
        fn chains_are_queues(steps in prop::collection::vec((0_u8..6, 0_usize..2), 0..300)) {
            let mut pool = Pool::new();
            let mut chains = [Chain::default(); 2];
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (number, (step, which)) in steps.into_iter().enumerate() {
                let [first, second] = &mut chains;
                let (this, other) = if which == 0 { (first, second) } else { (second, first) };
                match step {
                    0 | 1 => {
                        pool.push(this, number);
                        model[which].push_back(number);
                    }
                    2 => prop_assert_eq!(pool.pop(this), model[which].pop_front()),
                    3 => {
                        let moved = model[which].pop_front();
                        let key = pool.move_front(this, other);
                        prop_assert_eq!(key.and_then(|key| pool.get_mut(key).copied()), moved);
                        model[1 - which].extend(moved);
                    }
                    4 => {
                        let wanted = |item: &usize| item % 3 == number % 3;
                        let at = model[which].iter().position(wanted);
                        let taken = at.and_then(|at| model[which].remove(at));
                        prop_assert_eq!(pool.take(this, wanted), taken);
                    }
                    _ => {
                        pool.clear(this);
                        model[which].clear();
                    }
                }
                for (chain, model) in chains.iter().zip(&model) {
                    prop_assert!(pool.iter(chain).eq(model.iter()));
                    prop_assert_eq!(pool.front(chain), model.front());
                    prop_assert_eq!((chain.len() as usize, chain.is_empty()), (model.len(), model.is_empty()));
                }
                prop_assert_eq!(pool.len(), model[0].len() + model[1].len());
            }
        }
    }
}

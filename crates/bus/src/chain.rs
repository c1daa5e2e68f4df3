//! Queues that share one store. An idle socket has several queues, which take no memory of their own; none allocates once the store has
//! grown.

use slab::Slab;

/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// One queue, whose nodes are in [`Chains`]. A queue belongs to the store with which it was first used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
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
    /// Returns the number of nodes in the queue.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[derive(Clone, Debug)]
struct Node<T> {
    value: T,
    next: u32,
}

/// The nodes of all queues of one kind. The store grows to the largest number of nodes so far and never shrinks.
#[derive(Clone, Debug)]
pub struct Chains<T> {
    nodes: Slab<Node<T>>,
}

impl<T> Default for Chains<T> {
    fn default() -> Self {
        Self { nodes: Slab::new() }
    }
}

impl<T> Chains<T> {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of nodes in all queues.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Appends `value` to a queue. Returns the node's number, which stays the same while the node is queued.
    pub fn push(&mut self, chain: &mut Chain, value: T) -> u32 {
        let node = self.nodes.insert(Node { value, next: NONE }) as u32;
        self.append(chain, node);
        node
    }

    /// Returns the first value of a queue.
    pub fn front(&self, chain: &Chain) -> Option<&T> {
        Some(&self.nodes.get(chain.head as usize)?.value)
    }

    /// Returns the first value of a queue mutably.
    pub fn front_mut(&mut self, chain: &Chain) -> Option<&mut T> {
        Some(&mut self.nodes.get_mut(chain.head as usize)?.value)
    }

    /// Returns the last value of a queue mutably.
    pub fn back_mut(&mut self, chain: &Chain) -> Option<&mut T> {
        Some(&mut self.nodes.get_mut(chain.tail as usize)?.value)
    }

    /// Removes and returns the first value of a queue.
    pub fn pop(&mut self, chain: &mut Chain) -> Option<T> {
        let node = self.unlink_first(chain)?;
        Some(self.nodes.remove(node as usize).value)
    }

    /// Moves the first node of one queue to the end of another. Returns the node's number.
    pub fn move_front(&mut self, from: &mut Chain, to: &mut Chain) -> Option<u32> {
        let node = self.unlink_first(from)?;
        self.append(to, node);
        Some(node)
    }

    /// Returns the value of a node in any queue.
    pub fn get(&self, node: u32) -> Option<&T> {
        Some(&self.nodes.get(node as usize)?.value)
    }

    /// Returns the value of a node mutably.
    pub fn get_mut(&mut self, node: u32) -> Option<&mut T> {
        Some(&mut self.nodes.get_mut(node as usize)?.value)
    }

    /// Removes a node from its queue, or returns `None` if the node is in another queue. Searches the queue, which should be short.
    pub fn remove(&mut self, chain: &mut Chain, node: u32) -> Option<T> {
        self.take_node(chain, |number, _| number == node)
    }

    /// Removes and returns the first value that satisfies `wanted`. Searches the queue, which should be short.
    pub fn take(&mut self, chain: &mut Chain, mut wanted: impl FnMut(&T) -> bool) -> Option<T> {
        self.take_node(chain, |_, value| wanted(value))
    }

    /// Returns the values of a queue, in order.
    pub fn iter<'a>(&'a self, chain: &Chain) -> impl Iterator<Item = &'a T> {
        self.numbers(chain)
            .map(|node| &self.nodes[node as usize].value)
    }

    /// Returns the number of the first node of a queue.
    pub fn first(&self, chain: &Chain) -> Option<u32> {
        (!chain.is_empty()).then_some(chain.head)
    }

    /// Returns the numbers of a queue's nodes, in order.
    pub fn numbers(&self, chain: &Chain) -> impl Iterator<Item = u32> + '_ {
        let first = self.first(chain);
        std::iter::successors(first, |&node| {
            let next = self.nodes[node as usize].next;
            (next != NONE).then_some(next)
        })
    }

    /// Removes all nodes of a queue.
    pub fn clear(&mut self, chain: &mut Chain) {
        while self.pop(chain).is_some() {}
    }

    /// Asserts that a queue is consistent. Returns its length.
    pub fn check(&self, chain: &Chain) -> usize {
        let walked = self
            .numbers(chain)
            .fold((0, NONE), |(len, _), node| (len + 1, node));
        assert_eq!(walked, (chain.len(), chain.tail));
        chain.len() as usize
    }

    fn append(&mut self, chain: &mut Chain, node: u32) {
        match self.nodes.get_mut(chain.tail as usize) {
            Some(last) => last.next = node,
            None => chain.head = node,
        }
        chain.tail = node;
        chain.len += 1;
    }

    /// Unlinks the first node from its queue. The node stays in the store.
    fn unlink_first(&mut self, chain: &mut Chain) -> Option<u32> {
        let node = chain.head;
        let first = self.nodes.get_mut(node as usize)?;
        chain.head = std::mem::replace(&mut first.next, NONE);
        if chain.head == NONE {
            chain.tail = NONE;
        }
        chain.len -= 1;
        Some(node)
    }

    fn take_node(
        &mut self,
        chain: &mut Chain,
        mut wanted: impl FnMut(u32, &T) -> bool,
    ) -> Option<T> {
        let (mut before, mut number) = (NONE, chain.head);
        while let Some(node) = self.nodes.get(number as usize) {
            if !wanted(number, &node.value) {
                (before, number) = (number, node.next);
                continue;
            }
            let Node { value, next } = self.nodes.remove(number as usize);
            match self.nodes.get_mut(before as usize) {
                Some(node) => node.next = next,
                None => chain.head = next,
            }
            if next == NONE {
                chain.tail = before;
            }
            chain.len -= 1;
            return Some(value);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn chains_in_one_store_do_not_mix() {
        let mut chains = Chains::new();
        let (mut odd, mut even) = (Chain::default(), Chain::default());
        let nodes: Vec<u32> = (0..10)
            .map(|n| chains.push(if n % 2 == 0 { &mut even } else { &mut odd }, n))
            .collect();
        assert_eq!(
            chains.remove(&mut odd, nodes[4]),
            None,
            "of the other queue"
        );
        assert_eq!(chains.remove(&mut even, nodes[4]), Some(4), "in the middle");
        assert_eq!(chains.remove(&mut even, nodes[8]), Some(8), "the last");
        assert_eq!(chains.remove(&mut even, nodes[0]), Some(0), "the first");
        assert_eq!(chains.remove(&mut even, NONE), None);
        *chains.back_mut(&even).unwrap() = 60;
        assert_eq!(chains.check(&even), 2);
        chains.push(&mut even, 12);
        let drained = std::iter::from_fn(|| chains.pop(&mut even));
        assert_eq!(drained.collect::<Vec<_>>(), [2, 60, 12]);
        assert_eq!(chains.check(&odd), 5);
        chains.clear(&mut odd);
        assert_eq!((chains.len(), odd), (0, Chain::default()));
    }

    proptest! {
        /// Two queues in one store behave like two independent queues.
        #[test]
        fn chains_behave_like_queues(steps in prop::collection::vec((0_u8..6, 0_usize..2), 0..300)) {
            let mut store = Chains::new();
            let mut chains = [Chain::default(); 2];
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (number, (step, which)) in steps.into_iter().enumerate() {
                let [first, second] = &mut chains;
                let (this, other) = if which == 0 { (first, second) } else { (second, first) };
                match step {
                    0 | 1 => {
                        store.push(this, number);
                        model[which].push_back(number);
                    }
                    2 => prop_assert_eq!(store.pop(this), model[which].pop_front()),
                    3 => {
                        let moved = model[which].pop_front();
                        let key = store.move_front(this, other);
                        prop_assert_eq!(key.and_then(|key| store.get_mut(key).copied()), moved);
                        model[1 - which].extend(moved);
                    }
                    4 => {
                        let wanted = |item: &usize| item % 3 == number % 3;
                        let at = model[which].iter().position(wanted);
                        let taken = at.and_then(|at| model[which].remove(at));
                        prop_assert_eq!(store.take(this, wanted), taken);
                    }
                    _ => {
                        store.clear(this);
                        model[which].clear();
                    }
                }
                for (chain, model) in chains.iter().zip(&model) {
                    prop_assert!(store.iter(chain).eq(model.iter()));
                    prop_assert_eq!(store.front(chain), model.front());
                    prop_assert_eq!((chain.len() as usize, chain.is_empty()), (model.len(), model.is_empty()));
                }
                prop_assert_eq!(store.len(), model[0].len() + model[1].len());
            }
        }
    }
}

//! Queues that share one store: an idle socket has several and none takes memory of its own, and in steady state none allocates.

use slab::Slab;

/// No node.
const NONE: u32 = u32::MAX;

/// One queue; its nodes are in [`Chains`]. It belongs to the store that it was first used with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// How many there are in it.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[derive(Clone, Debug)]
struct Node<T> {
    value: T,
    next: u32,
}

/// The nodes of all queues.
#[derive(Clone, Debug)]
pub(super) struct Chains<T> {
    nodes: Slab<Node<T>>,
}

impl<T> Chains<T> {
    /// No nodes.
    pub fn new() -> Self {
        Self { nodes: Slab::new() }
    }

    /// Nodes of all queues.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Appends to a queue; gives the node's number, which stays the same as long as it is queued.
    pub fn push(&mut self, chain: &mut Chain, value: T) -> u32 {
        let node = self.nodes.insert(Node { value, next: NONE }) as u32;
        if chain.is_empty() {
            chain.head = node;
        } else {
            self.nodes[chain.tail as usize].next = node;
        }
        chain.tail = node;
        chain.len += 1;
        node
    }

    /// What is first in a queue.
    pub fn front(&self, chain: &Chain) -> Option<&T> {
        Some(&self.nodes.get(chain.head as usize)?.value)
    }

    /// What is first in a queue, to be changed.
    pub fn front_mut(&mut self, chain: &Chain) -> Option<&mut T> {
        Some(&mut self.nodes.get_mut(chain.head as usize)?.value)
    }

    /// What is last in a queue, to be changed.
    pub fn back_mut(&mut self, chain: &Chain) -> Option<&mut T> {
        Some(&mut self.nodes.get_mut(chain.tail as usize)?.value)
    }

    /// Takes what is first in a queue.
    pub fn pop(&mut self, chain: &mut Chain) -> Option<T> {
        let node = self.nodes.try_remove(chain.head as usize)?;
        chain.head = node.next;
        chain.len -= 1;
        if chain.is_empty() {
            chain.tail = NONE;
        }
        Some(node.value)
    }

    /// What a node holds, of whatever queue.
    pub fn get(&self, node: u32) -> Option<&T> {
        Some(&self.nodes.get(node as usize)?.value)
    }

    /// Takes a node out of the queue that it is in; none when it is in another. Takes as long as there are nodes before it.
    pub fn remove(&mut self, chain: &mut Chain, node: u32) -> Option<T> {
        if chain.head == node {
            return self.pop(chain);
        }
        let before = self
            .numbers(chain)
            .find(|&other| self.nodes[other as usize].next == node && node != NONE)?;
        let removed = self.nodes.remove(node as usize);
        self.nodes[before as usize].next = removed.next;
        if chain.tail == node {
            chain.tail = before;
        }
        chain.len -= 1;
        Some(removed.value)
    }

    /// The number of the node that is first in a queue.
    pub fn first(&self, chain: &Chain) -> Option<u32> {
        (!chain.is_empty()).then_some(chain.head)
    }

    /// The numbers of a queue's nodes, in order.
    pub fn numbers(&self, chain: &Chain) -> impl Iterator<Item = u32> + '_ {
        let first = self.first(chain);
        std::iter::successors(first, |&node| {
            let next = self.nodes[node as usize].next;
            (next != NONE).then_some(next)
        })
    }

    /// Drops all that is in a queue.
    pub fn clear(&mut self, chain: &mut Chain) {
        while self.pop(chain).is_some() {}
    }

    /// Asserts that a queue is whole; gives how many are in it.
    pub fn check(&self, chain: &Chain) -> usize {
        assert_eq!(self.numbers(chain).count(), chain.len());
        assert_eq!(self.numbers(chain).last().unwrap_or(NONE), chain.tail);
        chain.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_one_store_do_not_mix() {
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
}

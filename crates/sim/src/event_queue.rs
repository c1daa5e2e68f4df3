//! A queue of events, ordered by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use baton_wire::Time;

/// Events ordered by time; events of the same time keep the order in which they were pushed.
///
/// The order is total and depends only on the calls made, so a run is repeatable. Pending events are moved often, so keep `E` small (an
/// enum of indices, not of packets).
///
/// ```
/// use baton_sim::EventQueue;
/// use baton_wire::Time;
///
/// let mut queue = EventQueue::new();
/// queue.push(Time::from_ps(20), 'c');
/// queue.push(Time::from_ps(10), 'a');
/// queue.push(Time::from_ps(10), 'b');
/// assert_eq!(queue.pop(), Some((Time::from_ps(10), 'a')));
/// assert_eq!(queue.pop(), Some((Time::from_ps(10), 'b')));
/// assert_eq!(queue.pop(), Some((Time::from_ps(20), 'c')));
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    next_sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Returns time and sequence number as one integer, which compares without a branch on equal times.
    fn key(&self) -> u128 {
        u128::from(self.time.as_ps()) << 64 | u128::from(self.sequence)
    }
}

// `BinaryHeap` returns the greatest entry first, so the order is reversed. The event itself is not compared.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> EventQueue<E> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates a queue that holds `events` events before it has to grow.
    pub fn with_capacity(events: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(events),
            next_sequence: 0,
        }
    }

    /// Adds `event` at `time`, after all pending events of the same time.
    pub fn push(&mut self, time: Time, event: E) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(Entry {
            time,
            sequence,
            event,
        });
    }

    /// Removes and returns the earliest event.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|entry| (entry.time, entry.event))
    }

    /// Removes and returns the earliest event if it is due by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<E> {
        let is_due = self.peek_time().is_some_and(|due| due <= now);
        is_due.then(|| self.pop())?.map(|(_, event)| event)
    }

    /// Returns the time of the earliest event.
    pub fn peek_time(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.time)
    }

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

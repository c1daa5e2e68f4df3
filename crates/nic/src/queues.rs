//! Bounded queues of pending work, whose entries record when they arrived.

use crate::drops::Drop;
use crate::scheduler::{Heads, Source};
use baton_bus::Fifo;
use std::num::NonZeroU64;

/// Position of an arrival among all arrivals at the NIC, from the MAC and from the host. First come, first served serves the lowest stamp
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(NonZeroU64);

/// Returns the first stamp.
impl Default for Stamp {
    fn default() -> Self {
        Self(NonZeroU64::MIN)
    }
}

impl Stamp {
    /// Returns the current stamp and advances to the next one.
    pub(crate) fn take(&mut self) -> Self {
        let stamp = *self;
        self.0 = self.0.saturating_add(1);
        stamp
    }

    /// Returns the stamp as a number, which is larger than that of any earlier stamp.
    #[inline]
    pub(crate) fn place(self) -> u64 {
        self.0.get()
    }
}

/// A first-in, first-out queue with a limit. Its memory grows to the largest length so far and never shrinks, so that a queue of steady
/// length does not allocate.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Arrival of the oldest entry. Most readers of a queue need nothing else.
    head: Option<Stamp>,
    entries: Fifo<(Stamp, T)>,
    limit: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            head: None,
            entries: Fifo::new(),
            limit: limit as usize,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// Appends `item`. The queue must not be full.
    #[inline]
    pub(crate) fn push(&mut self, stamp: Stamp, item: T) {
        debug_assert!(
            self.entries.back().is_none_or(|(last, _)| *last < stamp),
            "arrivals are stamped in order"
        );
        debug_assert!(!self.is_full(), "there is room");
        self.head.get_or_insert(stamp);
        self.entries.push((stamp, item));
    }

    /// Removes and returns the oldest entry, which arrived at [`Queue::head`].
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (_, item) = self.entries.pop()?;
        self.head = self.entries.front().map(|(stamp, _)| *stamp);
        Some(item)
    }

    /// Removes and returns the oldest entries that satisfy the predicate, at most `most`.
    fn take_where(&mut self, most: usize, mut holds: impl FnMut(&T) -> bool) -> Vec<(Stamp, T)> {
        let mut taken = Vec::new();
        for (stamp, item) in self.take_all() {
            match taken.len() < most && holds(&item) {
                true => taken.push((stamp, item)),
                false => self.push(stamp, item),
            }
        }
        taken
    }

    /// Inserts entries in order of arrival. The queue must have space for them.
    fn merge(&mut self, mut entries: Vec<(Stamp, T)>) {
        entries.extend(self.take_all());
        entries.sort_unstable_by_key(|(stamp, _)| *stamp);
        for (stamp, item) in entries {
            self.push(stamp, item);
        }
    }

    fn take_all(&mut self) -> Vec<(Stamp, T)> {
        self.head = None;
        self.entries.take(self.entries.len()).collect()
    }

    /// Returns the arrival of the oldest entry.
    #[inline]
    pub(crate) fn head(&self) -> Option<Stamp> {
        self.head
    }

    /// Returns the oldest entry.
    pub(crate) fn front(&self) -> Option<&T> {
        self.entries.front().map(|(_, item)| item)
    }

    /// Returns the number of entries that can be added.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, item)| item)
    }

    /// Asserts the limit and the order of the queue.
    pub(crate) fn check(&self) {
        assert!(self.len() <= self.limit, "a queue keeps to its limit");
        let stamps = self.entries.iter().map(|(stamp, _)| *stamp);
        assert_eq!(self.head, stamps.clone().next(), "the oldest is known");
        assert!(
            stamps.is_sorted_by(|a, b| a < b),
            "a queue is in order of arrival"
        );
    }
}

/// Number of entries in each queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLengths {
    /// Received packets that wait for lookup.
    pub arrivals: usize,
    /// Received packets that wait to be passed to the host.
    pub host_receive: usize,
    /// Received packets of connections on the NIC: Qlen.
    pub nic_receive: usize,
    /// Packets of hosts to be sent.
    pub host_send: usize,
    /// Commands of hosts.
    pub commands: usize,
}

/// The firmware's queues of received packets (handoff-policies, figure 2).
#[derive(Debug)]
pub(crate) struct Queues<R> {
    pub(crate) arrivals: Queue<R>,
    pub(crate) host_receive: Queue<R>,
    pub(crate) nic_receive: Queue<R>,
}

impl<R> Queues<R> {
    pub(crate) fn new(config: &crate::Config) -> Self {
        Self {
            arrivals: Queue::new(config.arrival_queue_packets),
            host_receive: Queue::new(config.receive_queue_packets),
            nic_receive: Queue::new(config.receive_queue_packets),
        }
    }

    pub(crate) fn lengths(&self) -> QueueLengths {
        QueueLengths {
            arrivals: self.arrivals.len(),
            host_receive: self.host_receive.len(),
            nic_receive: self.nic_receive.len(),
            ..QueueLengths::default()
        }
    }

    /// Returns the arrival of the oldest entry of each queue.
    #[inline]
    pub(crate) fn heads(&self) -> Heads {
        Heads::default()
            .with(Source::Arrivals, self.arrivals.head())
            .with(Source::HostReceive, self.host_receive.head())
            .with(Source::NicReceive, self.nic_receive.head())
    }

    /// Returns whether any queue has an entry.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        (self.arrivals.head())
            .or(self.host_receive.head())
            .or(self.nic_receive.head())
            .is_some()
    }

    /// Returns Qlen: the number of packets on the NIC's receive queue. Under FCFS, where lookup waits too, this includes all packets that
    /// wait for lookup.
    pub(crate) fn qlen(&self, looks_up_first: bool) -> u32 {
        let unknown = match looks_up_first {
            true => 0,
            false => self.arrivals.len(),
        };
        (self.nic_receive.len() + unknown) as u32
    }

    /// Queues a packet that arrived at `stamp`, after lookup has found out whether it belongs to a connection on the NIC (`ours`).
    ///
    /// # Errors
    /// Returns the packet, which the caller must drop, and the reason if the queue is full.
    #[inline]
    pub(crate) fn sort(&mut self, stamp: Stamp, packet: R, ours: bool) -> Result<(), (Drop, R)> {
        let (queue, reason) = match ours {
            true => (&mut self.nic_receive, Drop::NicReceiveQueue),
            false => (&mut self.host_receive, Drop::HostReceiveQueue),
        };
        if queue.is_full() {
            return Err((reason, packet));
        }
        queue.push(stamp, packet);
        Ok(())
    }

    /// Moves packets of hosts from the NIC's queue to the host's queue, as far as the latter has space; the other packets are recognized
    /// when they are processed. Returns the number of packets moved.
    pub(crate) fn sort_again(&mut self, is_of_host: impl FnMut(&R) -> bool) -> u32 {
        let room = self.host_receive.room();
        let taken = self.nic_receive.take_where(room, is_of_host);
        let count = taken.len() as u32;
        if count > 0 {
            self.host_receive.merge(taken);
        }
        count
    }

    pub(crate) fn check(&self) {
        self.arrivals.check();
        self.host_receive.check();
        self.nic_receive.check();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_connections_that_have_left_go_to_the_host_in_order() {
        let config = crate::Config {
            receive_queue_packets: 4,
            ..crate::Config::default()
        };
        let mut queues = Queues::new(&config);
        let mut clock = Stamp::default();
        for (packet, ours) in [(1, true), (2, false), (3, true), (4, true), (5, false)] {
            let sorted = queues.sort(clock.take(), packet, ours);
            assert_eq!(sorted, Ok(()));
        }
        assert_eq!(queues.sort_again(|_| false), 0);
        assert_eq!(queues.sort_again(|&packet| packet != 3), 2);
        queues.check();
        let order = std::iter::from_fn(|| queues.host_receive.pop());
        assert_eq!(order.collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert_eq!(queues.nic_receive.pop(), Some(3));
    }

    #[test]
    fn packets_that_do_not_fit_stay_in_their_queue() {
        let config = crate::Config {
            receive_queue_packets: 2,
            ..crate::Config::default()
        };
        let mut queues = Queues::new(&config);
        let mut clock = Stamp::default();
        for (packet, ours) in [(1, false), (2, true), (3, true)] {
            let sorted = queues.sort(clock.take(), packet, ours);
            assert_eq!(sorted, Ok(()));
        }
        assert_eq!(queues.sort_again(|_| true), 1);
        queues.check();
        assert_eq!(queues.nic_receive.pop(), Some(3));
    }

    #[test]
    fn a_queue_tracks_its_space_and_its_order() {
        let mut clock = Stamp::default();
        let mut queue = Queue::new(2);
        queue.push(clock.take(), 'a');
        let second = clock;
        assert_eq!(queue.room(), 1);
        queue.push(clock.take(), 'b');
        assert!(queue.is_full());
        queue.check();
        assert_eq!(queue.pop(), Some('a'));
        assert_eq!(queue.head(), Some(second));
        queue.push(clock.take(), 'c');
        queue.check();
        assert_eq!(queue.pop(), Some('b'));
        assert_eq!(queue.pop(), Some('c'));
        assert_eq!(queue.pop(), None);
    }
}

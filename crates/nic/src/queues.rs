//! Where work waits: finite queues whose entries remember when they arrived.

use crate::drops::Drop;
use crate::scheduler::{Heads, Source};
use baton_bus::Fifo;
use std::num::NonZeroU64;

/// The place of an arrival among all arrivals at the NIC, from the MAC and from the host alike.
/// First come, first served means: lowest stamp first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(NonZeroU64);

/// The first.
impl Default for Stamp {
    fn default() -> Self {
        Self(NonZeroU64::MIN)
    }
}

impl Stamp {
    /// This stamp; the clock moves on to the next.
    pub(crate) fn take(&mut self) -> Self {
        let stamp = *self;
        self.0 = self.0.saturating_add(1);
        stamp
    }

    /// It comes after all with a lower one.
    #[inline]
    pub(crate) fn place(self) -> u64 {
        self.0.get()
    }
}

/// A first-in, first-out queue with a limit. It grows to its longest so far and never shrinks, so that a steady one does not
/// allocate.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// When the oldest entry arrived: most who look at a queue want to know only that.
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

    /// Appends `item`, for which there is room.
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

    /// Takes the oldest entry, which arrived at [`Queue::head`].
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (_, item) = self.entries.pop()?;
        self.head = self.entries.front().map(|(stamp, _)| *stamp);
        Some(item)
    }

    /// When its oldest entry arrived.
    #[inline]
    pub(crate) fn head(&self) -> Option<Stamp> {
        self.head
    }

    /// Its oldest entry.
    pub(crate) fn front(&self) -> Option<&T> {
        self.entries.front().map(|(_, item)| item)
    }

    /// Entries for which there is room.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, item)| item)
    }

    /// Asserts its limit and its order.
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

/// How many entries wait in each queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLengths {
    /// Received packets that wait for lookup.
    pub arrivals: usize,
    /// Received packets on their way to the host.
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

    /// When the oldest entry of each queue arrived.
    #[inline]
    pub(crate) fn heads(&self) -> Heads {
        Heads::default()
            .with(Source::Arrivals, self.arrivals.head())
            .with(Source::HostReceive, self.host_receive.head())
            .with(Source::NicReceive, self.nic_receive.head())
    }

    /// Whether anything waits.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        (self.arrivals.head())
            .or(self.host_receive.head())
            .or(self.nic_receive.head())
            .is_some()
    }

    /// Qlen: packets that wait on the receive queue of the NIC. Under FCFS, where lookup waits too, all packets that wait there.
    pub(crate) fn qlen(&self, looks_up_first: bool) -> u32 {
        let unknown = match looks_up_first {
            true => 0,
            false => self.arrivals.len(),
        };
        (self.nic_receive.len() + unknown) as u32
    }

    /// Lookup has found whose a packet is, which arrived at `stamp`.
    ///
    /// # Errors
    /// Its queue is full: the packet is to be dropped, for this reason.
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
    fn a_queue_knows_its_room_and_its_order() {
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

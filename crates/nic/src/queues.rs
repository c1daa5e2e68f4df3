//! Where work waits: finite queues whose entries remember when they arrived.

use crate::cache::assembly::Gathered;
use crate::descriptor::Command;
use crate::stats::CacheRefusal;
use baton_tcp::Segment;
use baton_wire::Time;
use std::collections::VecDeque;

/// The place of an arrival among all arrivals at the NIC, from the MAC and from the host alike.
/// First come, first served means: lowest stamp first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// This stamp; the clock moves on to the next.
    pub(crate) fn take(&mut self) -> Self {
        let stamp = *self;
        self.0 += 1;
        stamp
    }
}

/// A first-in, first-out queue with a limit. It grows to its longest so far and never shrinks, so that a short queue stays
/// in few cache lines and a steady one does not allocate.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    entries: VecDeque<(Stamp, T)>,
    limit: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            limit: limit as usize,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.limit
    }

    /// Appends `item`, or gives it back when the queue is full.
    pub(crate) fn push(&mut self, stamp: Stamp, item: T) -> Result<(), T> {
        debug_assert!(
            self.entries.back().is_none_or(|(last, _)| *last < stamp),
            "arrivals are stamped in order"
        );
        if self.is_full() {
            return Err(item);
        }
        self.entries.push_back((stamp, item));
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<(Stamp, T)> {
        self.entries.pop_front()
    }

    /// When its oldest entry arrived.
    pub(crate) fn head(&self) -> Option<Stamp> {
        self.entries.front().map(|(stamp, _)| *stamp)
    }

    /// Whether `more` entries find room.
    pub(crate) fn has_room_for(&self, more: usize) -> bool {
        self.entries.len() + more <= self.limit
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, item)| item)
    }

    /// Asserts its limit and its order.
    pub(crate) fn check(&self) {
        assert!(
            self.entries.len() <= self.limit,
            "a queue keeps to its limit"
        );
        assert!(
            self.entries
                .iter()
                .zip(self.entries.iter().skip(1))
                .all(|(a, b)| a.0 < b.0),
            "a queue is in order of arrival"
        );
    }
}

/// A received packet in on-board memory.
#[derive(Debug)]
pub(crate) struct Received<P> {
    pub(crate) segment: Segment<P>,
    /// When its frame arrived at the MAC.
    pub(crate) since: Time,
    /// On-board memory it takes.
    pub(crate) bytes: u32,
}

/// What the host wants done in order: packets on their way out, and what the data cache needs for them.
#[derive(Debug)]
pub(crate) enum HostWork<P> {
    /// A packet that is all in host memory.
    Packet {
        segment: Segment<P>,
        /// When its descriptor arrived at the NIC.
        since: Time,
    },
    /// A packet in parts.
    Gather {
        packet: Gathered<P>,
        /// When its last part arrived at the NIC.
        since: Time,
    },
    /// A packet whose parts made no sense: it is only reported as done with.
    Refused(CacheRefusal),
    /// nic_cache_init.
    CacheInit,
    /// nic_cache_insert.
    CacheInsert {
        data: P,
        offset: u32,
        generation: u32,
    },
}

impl<P> HostWork<P> {
    /// Whether the host waits for it to be reported in [`crate::ToHost::Sent`].
    pub(crate) fn is_packet(&self) -> bool {
        !matches!(self, Self::CacheInit | Self::CacheInsert { .. })
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
    /// Packets of the host to be sent.
    pub host_send: usize,
    /// Commands of the host.
    pub commands: usize,
}

/// All queues of the firmware (handoff-policies, figure 2).
#[derive(Debug)]
pub(crate) struct Queues<P> {
    pub(crate) arrivals: Queue<Received<P>>,
    pub(crate) host_receive: Queue<Received<P>>,
    pub(crate) nic_receive: Queue<Received<P>>,
    pub(crate) host_send: Queue<HostWork<P>>,
    pub(crate) commands: Queue<Command<P>>,
}

impl<P> Queues<P> {
    pub(crate) fn new(config: &crate::Config) -> Self {
        Self {
            arrivals: Queue::new(config.arrival_queue_packets),
            host_receive: Queue::new(config.receive_queue_packets),
            nic_receive: Queue::new(config.receive_queue_packets),
            host_send: Queue::new(config.descriptor_queue_entries),
            commands: Queue::new(config.descriptor_queue_entries),
        }
    }

    pub(crate) fn lengths(&self) -> QueueLengths {
        QueueLengths {
            arrivals: self.arrivals.len(),
            host_receive: self.host_receive.len(),
            nic_receive: self.nic_receive.len(),
            host_send: self.host_send.len(),
            commands: self.commands.len(),
        }
    }

    /// Bytes of on-board memory that the received packets take.
    pub(crate) fn packet_bytes(&self) -> u64 {
        let received = self
            .arrivals
            .iter()
            .chain(self.host_receive.iter())
            .chain(self.nic_receive.iter());
        received.map(|packet| u64::from(packet.bytes)).sum()
    }

    pub(crate) fn check(&self) {
        self.arrivals.check();
        self.host_receive.check();
        self.nic_receive.check();
        self.host_send.check();
        self.commands.check();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_gives_back() {
        let mut clock = Stamp::default();
        let mut queue = Queue::new(2);
        assert_eq!(queue.push(clock.take(), 'a'), Ok(()));
        assert_eq!(queue.push(clock.take(), 'b'), Ok(()));
        assert_eq!(queue.push(clock.take(), 'c'), Err('c'));
        queue.check();
        assert_eq!(queue.pop(), Some((Stamp(0), 'a')));
        assert_eq!(queue.head(), Some(Stamp(1)));
        assert_eq!(queue.push(clock.take(), 'd'), Ok(()));
        queue.check();
    }
}

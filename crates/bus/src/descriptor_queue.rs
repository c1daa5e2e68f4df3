//! Queues descriptors for the other side and transfers them in batches.

use crate::descriptor::{Descriptor, entries_within};
use crate::{Batcher, Batching, BatchingError, BatchingRule, EntriesPerTransfer, Ring, Urgency};
use baton_wire::Time;

/// The descriptors of one side that have not yet been transferred. An entry, which consists of a descriptor and its continuations, is never
/// divided.
///
/// The caller calls [`DescriptorQueue::push`] for each entry; then [`DescriptorQueue::next_transfer`] and, for the part that the link took,
/// [`DescriptorQueue::transferred`], until no transfer is due; and repeats this at [`DescriptorQueue::poll_timeout`].
#[derive(Debug)]
pub struct DescriptorQueue {
    ring: Ring<Descriptor>,
    batcher: Batcher,
    /// Number of descriptors at the head of the ring that are due.
    due: usize,
    /// Number of descriptors at the head of the ring up to the last awaited one.
    awaited: usize,
    most_per_transfer: usize,
    stats: QueueStats,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Number of descriptors in each transfer.
    pub per_transfer: EntriesPerTransfer,
    /// Number of entries for which the queue had no space.
    pub full: u64,
    /// Number of times that the other side had no space for all of a transfer.
    pub held_up: u64,
}

impl DescriptorQueue {
    /// Creates an empty queue of `depth` descriptors.
    ///
    /// # Errors
    /// Names the invalid parameter and the accepted values.
    pub fn new(config: &Batching, depth: u32) -> Result<Self, BatchingError> {
        let batcher = Batcher::new(config, depth, Descriptor::BYTES)?;
        Ok(Self {
            ring: Ring::new(depth as usize),
            batcher,
            due: 0,
            awaited: 0,
            most_per_transfer: config.most_per_transfer(Descriptor::BYTES) as usize,
            stats: QueueStats::default(),
        })
    }

    /// Replaces the configured batching by the caller's own rule. Must be called before any entry waits.
    pub fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        self.batcher.set_rule(rule);
    }

    /// Appends an entry that refers to `data_bytes` of data. Returns false if the queue has no space for all of it.
    pub fn push(
        &mut self,
        now: Time,
        entry: &[Descriptor],
        data_bytes: u32,
        urgency: Urgency,
    ) -> bool {
        debug_assert_eq!(entry.len(), 1 + entry[0].continuations());
        if !self.ring.try_extend(entry) {
            self.stats.full += 1;
            // There is no space until waiting entries have left.
            self.batcher.flush();
            return false;
        }
        if urgency != Urgency::Lazy {
            self.awaited = self.ring.len();
        }
        let flow = entry[0].socket();
        self.batcher.queued(now, flow, data_bytes, urgency);
        true
    }

    /// Makes all waiting entries due immediately.
    pub fn flush(&mut self) {
        self.batcher.flush();
    }

    /// Returns the descriptors to transfer next at `now`. Empty if none are due.
    #[inline]
    pub fn next_transfer(&mut self, now: Time) -> &[Descriptor] {
        if self.batcher.is_due(now) {
            self.batcher.taken(now);
            self.due = self.ring.len();
        }
        let due = &self.ring.as_slice()[..self.due];
        let Some(first) = due.first() else {
            return due;
        };
        // An entry that is longer than a transfer goes alone.
        let most = self.most_per_transfer.max(1 + first.continuations());
        &due[..entries_within(due, most)]
    }

    /// Records that the link has taken the first `taken` of the `offered` descriptors of the next transfer.
    #[inline]
    pub fn transferred(&mut self, taken: usize, offered: usize) {
        debug_assert!(taken <= offered && offered <= self.due);
        self.stats.held_up += u64::from(taken < offered);
        if taken > 0 {
            self.stats.per_transfer.record(taken as u64);
        }
        self.ring.drop_front(taken);
        self.due -= taken;
        self.awaited = self.awaited.saturating_sub(taken);
    }

    /// Returns whether the next transfer or a later one contains awaited entries.
    pub fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Returns whether entries are due at `now`, or were due earlier and the link did not take them.
    pub fn is_due(&self, now: Time) -> bool {
        self.due > 0 || self.batcher.is_due(now)
    }

    /// Discards all entries because their link no longer exists.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.batcher.clear();
        (self.due, self.awaited) = (0, 0);
    }

    /// Returns when the waiting entries become due, if there are any.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.batcher.deadline()
    }

    /// Returns whether entries were due that the link did not take.
    pub fn is_held_up(&self) -> bool {
        self.due > 0
    }

    /// Returns the number of descriptors in the first due entry that the link did not take, which is the least that the link can take.
    /// `None` if there is no such entry.
    #[inline]
    pub fn first_held_up(&self) -> Option<usize> {
        let due = &self.ring.as_slice()[..self.due];
        due.first().map(|first| 1 + first.continuations())
    }

    /// Returns the number of waiting descriptors.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Returns whether no descriptor waits.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the number of descriptors for which there is space.
    pub fn room(&self) -> usize {
        self.ring.free()
    }

    /// Returns the totals.
    pub fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{Action, Buffer, Request, write_inline};
    use baton_wire::Span;
    use proptest::prelude::*;

    fn entry(tag: u32, inline_bytes: u16) -> Vec<Descriptor> {
        let data = if inline_bytes == 0 {
            Buffer::Memory { address: 0, len: 1 }
        } else {
            Buffer::Inline { len: inline_bytes }
        };
        let action = Action::send(data, false);
        let socket = 0;
        let mut head = Request {
            socket,
            tag,
            action,
        }
        .encode();
        let mut tail = Vec::new();
        if inline_bytes > 0 {
            write_inline(&mut head, &vec![7; inline_bytes.into()], &mut tail);
        }
        std::iter::once(head).chain(tail).collect()
    }

    #[test]
    fn a_queue_knows_up_to_where_a_waiter_waits() {
        let mut queue = DescriptorQueue::new(&Batching::default(), 16).unwrap();
        let now = Time::ZERO;
        for (tag, urgency) in [
            (1, Urgency::Lazy),
            (2, Urgency::Awaited),
            (3, Urgency::Lazy),
        ] {
            assert_eq!(queue.is_awaited(), tag > 2);
            assert!(queue.push(now, &entry(tag, 0), 0, urgency));
        }
        assert_eq!(queue.next_transfer(now).len(), 3);
        queue.transferred(1, 3);
        assert!(queue.is_awaited(), "the second is still there");
        queue.transferred(1, 2);
        assert!(!queue.is_awaited(), "nobody waits for the third");
        queue.clear();
        assert!(queue.is_empty() && !queue.is_awaited());
    }

    #[test]
    fn a_queue_knows_how_much_space_its_entries_need() {
        let mut queue = DescriptorQueue::new(&Batching::default(), 16).unwrap();
        let now = Time::ZERO;
        let long = entry(2, 100);
        assert!(queue.push(now, &entry(1, 0), 0, Urgency::Awaited));
        assert!(queue.push(now, &long, 0, Urgency::Awaited));
        let offered = queue.next_transfer(now).len();
        assert_eq!(queue.first_held_up(), Some(1));
        queue.transferred(1, offered);
        assert_eq!(queue.first_held_up(), Some(long.len()));
        queue.transferred(long.len(), long.len());
        assert_eq!(queue.first_held_up(), None);
    }

    proptest! {
        /// However much the link takes, all descriptors leave in order, and only whole entries are offered.
        #[test]
        fn queued_descriptors_are_sent_in_order(level in 1_u32..8, steps in prop::collection::vec((0_u16..=240, 0_usize..20, 0_u64..30), 1..100)) {
            let config = Batching { level, timer_us: 20, max_descriptors: 6, ..Batching::default() };
            let mut queue = DescriptorQueue::new(&config, 16).unwrap();
            let (mut pushed, mut gone) = (Vec::new(), Vec::new());
            let mut now = Time::ZERO;
            for (tag, (inline_bytes, room, gap_us)) in steps.into_iter().enumerate() {
                now += Span::from_us(gap_us);
                let entry = entry(tag as u32, inline_bytes);
                let fits = queue.room() >= entry.len();
                prop_assert_eq!(queue.push(now, &entry, 0, Urgency::Awaited), fits);
                if fits {
                    pushed.extend(entry);
                }
                let mut room = room;
                loop {
                    let transfer = queue.next_transfer(now).to_vec();
                    if transfer.is_empty() {
                        break;
                    }
                    let mut at = 0;
                    while at < transfer.len() {
                        at += 1 + transfer[at].continuations();
                    }
                    prop_assert_eq!(at, transfer.len(), "whole entries");
                    prop_assert!(transfer.len() <= 6 || transfer.len() == 1 + transfer[0].continuations());
                    // The link takes only whole entries, too.
                    let mut taken = 0;
                    while taken < transfer.len() && taken + 1 + transfer[taken].continuations() <= room {
                        taken += 1 + transfer[taken].continuations();
                    }
                    gone.extend_from_slice(&transfer[..taken]);
                    queue.transferred(taken, transfer.len());
                    room -= taken;
                    if taken < transfer.len() {
                        break;
                    }
                }
            }
            now += Span::from_secs(1);
            loop {
                let transfer = queue.next_transfer(now);
                let len = transfer.len();
                if len == 0 {
                    break;
                }
                gone.extend_from_slice(transfer);
                queue.transferred(len, len);
            }
            prop_assert!(queue.is_empty() && !queue.is_held_up());
            prop_assert_eq!(gone, pushed);
        }
    }
}

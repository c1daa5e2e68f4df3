//! What a NIC writes into host memory: data of received packets, and entries of the host's ring in batches.

use super::super::crossings;
use crate::config::DmaConfig;
use baton_bus::handoff::ToHost;
use baton_bus::{BytesByCategory, Fifo};
use baton_wire::{Span, Symbolic, Time};

/// A DMA write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Write {
    /// The data of a packet or an event.
    Data(BytesByCategory),
    /// Entries of the ring.
    Entries(BytesByCategory),
}

/// A transfer of entries.
#[derive(Clone, Copy, Debug)]
struct Batch {
    items: usize,
    /// What its last entry reports, beside those of the items; no entry if none.
    sent: u32,
}

/// What a NIC writes into host memory, in order: first an item's data, then, when enough items wait or the first has waited
/// long enough, their ring entries.
#[derive(Debug)]
pub(in super::super) struct Upward {
    /// Each with whether it has data that is not written. The oldest are those whose entries are being written, then come those
    /// whose entries are to be written, then those whose data is not all in host memory.
    items: Fifo<(bool, ToHost<Symbolic>)>,
    /// The batches that the first `writing` items are in.
    batches: Fifo<Batch>,
    writing: usize,
    /// Items after those whose entries are to be written.
    ready: usize,
    /// Items after those whose data is under way, or who have none but wait behind such.
    under_way: usize,
    /// Packets that were sent and not yet reported.
    sent: u32,
    /// Entries are written until none is left.
    flushing: bool,
    /// When they are to be written whatever their number.
    due: Option<Time>,
    in_flight: u32,
    /// The oldest data under way is not in host memory before.
    data_after: Time,
    events_at_once: usize,
    config: DmaConfig,
}

impl Upward {
    pub(super) fn new(config: &DmaConfig, events_at_once: u32) -> Self {
        Self {
            items: Fifo::new(),
            batches: Fifo::new(),
            writing: 0,
            ready: 0,
            under_way: 0,
            sent: 0,
            flushing: false,
            due: None,
            in_flight: 0,
            data_after: Time::ZERO,
            events_at_once: events_at_once as usize,
            config: config.clone(),
        }
    }

    /// Items whose data is not all written.
    pub(in super::super) fn unwritten(&self) -> usize {
        self.items.len() - self.writing - self.ready
    }

    /// Places in the host's ring that all of this will take.
    pub(in super::super) fn len(&self) -> usize {
        let reports = self.batches.len() + usize::from(self.sent > 0);
        self.items.len() + reports
    }

    /// When to [`flush`](Self::flush).
    pub(in super::super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Until when it need not be known what has been written, if entries may wait `delay` for others and `sent` more packets will be
    /// reported: at once if that makes the NIC write or ends in an interrupt.
    pub(super) fn lookahead(&self, delay: Span, sent: u32) -> Time {
        let flushes = self.ready + self.under_way >= self.events_at_once
            || self.sent + sent >= self.config.sent_per_event;
        let writes = !self.batches.is_empty() || self.flushing;
        if self.waits() || flushes || writes {
            return Time::ZERO;
        }
        if self.under_way == 0 {
            return Time::NEVER;
        }
        self.data_after + delay
    }

    /// An item is to be written; its entry no later than `delay` after its data, if it `has_data`.
    pub(in super::super) fn push(
        &mut self,
        now: Time,
        item: ToHost<Symbolic>,
        has_data: bool,
        delay: Span,
    ) {
        self.items.push((has_data, item));
        self.settle(now, delay);
    }

    /// So many more packets of the host were sent.
    pub(in super::super) fn sent(&mut self, now: Time, packets: u32) {
        if packets == 0 {
            return;
        }
        self.sent += packets;
        if self.sent >= self.config.sent_per_event {
            self.flush();
        } else {
            self.expect(now + Span::from_us(self.config.sent_delay_us));
        }
    }

    /// Entries are to be written now.
    pub(in super::super) fn flush(&mut self) {
        self.due = None;
        self.flushing = true;
    }

    /// The next transfer, if fewer than the limit are under way. Entries go first: they complete what is there.
    #[inline]
    pub(in super::super) fn next_write(&mut self, now: Time) -> Option<Write> {
        if !self.holds_back() || self.in_flight >= self.config.writes_in_flight {
            return None;
        }
        let write = self.next_entries().or_else(|| self.next_data(now))?;
        self.in_flight += 1;
        Some(write)
    }

    /// The oldest data under way is in host memory.
    pub(in super::super) fn data_written(&mut self, now: Time, delay: Span) {
        self.in_flight -= 1;
        debug_assert!(self.under_way > 0, "it is not yet ready");
        let first = self.writing + self.ready;
        debug_assert!(self.items[first].0, "what has no data did not wait");
        self.items[first].0 = false;
        self.data_after = now;
        self.settle(now, delay);
    }

    /// The oldest batch of entries under way is in host memory: takes its items.
    pub(in super::super) fn entries_written(&mut self) -> impl Iterator<Item = ToHost<Symbolic>> {
        self.in_flight -= 1;
        let batch = self.batches.pop().expect("it was under way");
        self.writing -= batch.items;
        let report = (batch.sent > 0).then_some(ToHost::Sent(batch.sent));
        self.items
            .take(batch.items)
            .map(|(_, item)| item)
            .chain(report)
    }

    /// Whether something waits to be written, or to be seen that nothing does.
    #[inline]
    pub(super) fn holds_back(&self) -> bool {
        self.flushing || self.waits()
    }

    /// Whether items wait to be written.
    #[inline]
    fn waits(&self) -> bool {
        self.items.len() > self.writing + self.ready + self.under_way
    }

    fn next_entries(&mut self) -> Option<Write> {
        if !self.flushing || (self.ready == 0 && self.sent == 0) {
            self.flushing = false;
            return None;
        }
        let most = self.config.events_per_write as usize;
        let items = self.ready.min(most);
        // The report of what was sent comes last, if it still fits.
        let sent = if items < most {
            std::mem::take(&mut self.sent)
        } else {
            0
        };
        let packets = self
            .items
            .range(self.writing..self.writing + items)
            .filter(|(_, item)| matches!(item, ToHost::Packet(_)))
            .count();
        let events = items - packets + usize::from(sent > 0);
        let each = u64::from(self.config.event_bytes);
        let bytes = BytesByCategory {
            descriptor: packets as u64 * each,
            event: events as u64 * each,
            ..BytesByCategory::default()
        };
        self.writing += items;
        self.ready -= items;
        self.batches.push(Batch { items, sent });
        self.flushing = self.ready > 0 || self.sent > 0;
        Some(Write::Entries(bytes))
    }

    fn next_data(&mut self, now: Time) -> Option<Write> {
        if self.under_way == 0 {
            self.data_after = now;
        }
        loop {
            let next = self.writing + self.ready + self.under_way;
            let (has_data, item) = self.items.get(next)?;
            self.under_way += 1;
            if *has_data {
                return Some(Write::Data(crossings::of_upcall(item).data()));
            }
        }
    }

    /// Moves on what has all its data in host memory.
    fn settle(&mut self, now: Time, delay: Span) {
        let has_none = |(has_data, _): &(bool, _)| !has_data;
        while self
            .items
            .get(self.writing + self.ready)
            .is_some_and(has_none)
        {
            self.under_way = self.under_way.saturating_sub(1);
            self.ready += 1;
            self.expect(now + delay);
        }
        if self.ready >= self.events_at_once {
            self.flush();
        }
    }

    fn expect(&mut self, due: Time) {
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }
}

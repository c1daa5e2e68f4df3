//! What a NIC writes into host memory: data of received packets, and entries of the host's ring in batches.

use super::super::crossings;
use crate::config::DmaConfig;
use baton_bus::{BytesByCategory, Category};
use baton_nic::ToHost;
use baton_tcp::Symbolic;
use baton_wire::{Span, Time};
use std::collections::VecDeque;

/// A DMA write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Write {
    /// The data of a packet or an event.
    Data(BytesByCategory),
    /// Entries of the ring.
    Entries(BytesByCategory),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    UnderWay,
    Written,
}

/// What a NIC writes into host memory, in order: first an item's data, then, when enough items wait or the first has waited
/// long enough, their ring entries.
#[derive(Debug)]
pub(in super::super) struct Upward {
    /// Items whose data is not all in host memory.
    data: VecDeque<(State, ToHost<Symbolic>)>,
    /// The first of them that may have to be submitted.
    submitting: usize,
    /// Items whose entries are to be written.
    ready: VecDeque<ToHost<Symbolic>>,
    /// Items whose entries are being written, and how many in each transfer.
    writing: VecDeque<ToHost<Symbolic>>,
    batches: VecDeque<usize>,
    /// Packets that were sent and not yet reported.
    sent: u32,
    /// Entries are written until none is left.
    flushing: bool,
    /// When they are to be written whatever their number.
    due: Option<Time>,
    in_flight: u32,
    events_at_once: usize,
    config: DmaConfig,
}

impl Upward {
    pub(super) fn new(config: &DmaConfig, events_at_once: u32) -> Self {
        Self {
            data: VecDeque::new(),
            submitting: 0,
            ready: VecDeque::new(),
            writing: VecDeque::new(),
            batches: VecDeque::new(),
            sent: 0,
            flushing: false,
            due: None,
            in_flight: 0,
            events_at_once: events_at_once as usize,
            config: config.clone(),
        }
    }

    /// Items whose data is not all written.
    pub(in super::super) fn unwritten(&self) -> usize {
        self.data.len()
    }

    /// Places in the host's ring that all of this will take.
    pub(in super::super) fn len(&self) -> usize {
        self.data.len() + self.ready.len() + self.writing.len() + usize::from(self.sent > 0)
    }

    /// When to [`flush`](Self::flush).
    pub(in super::super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// An item is to be written; its entry no later than `delay` after its data.
    pub(in super::super) fn push(&mut self, now: Time, item: ToHost<Symbolic>, delay: Span) {
        self.data.push_back((State::Waits, item));
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
        if self.sent > 0 {
            self.ready
                .push_back(ToHost::Sent(std::mem::take(&mut self.sent)));
        }
    }

    /// The next transfer, if fewer than the limit are under way. Entries go first: they complete what is there.
    pub(in super::super) fn next_write(&mut self) -> Option<Write> {
        if self.in_flight >= self.config.writes_in_flight {
            return None;
        }
        let write = self.next_entries().or_else(|| self.next_data())?;
        self.in_flight += 1;
        Some(write)
    }

    /// The oldest data under way is in host memory.
    pub(in super::super) fn data_written(&mut self, now: Time, delay: Span) {
        self.in_flight -= 1;
        let (state, _) = self.data.front_mut().expect("it is not yet ready");
        debug_assert_eq!(*state, State::UnderWay);
        *state = State::Written;
        self.settle(now, delay);
    }

    /// The oldest batch of entries under way is in host memory: takes its items.
    pub(in super::super) fn entries_written(&mut self) -> impl Iterator<Item = ToHost<Symbolic>> {
        self.in_flight -= 1;
        let batch = self.batches.pop_front().expect("it was under way");
        self.writing.drain(..batch)
    }

    fn next_entries(&mut self) -> Option<Write> {
        if !self.flushing || self.ready.is_empty() {
            self.flushing = false;
            return None;
        }
        let batch = self.ready.len().min(self.config.events_per_write as usize);
        let each = u64::from(self.config.event_bytes);
        let bytes = self
            .ready
            .drain(..batch)
            .fold(BytesByCategory::default(), |bytes, item| {
                let category = match item {
                    ToHost::Packet(_) => Category::Descriptor,
                    ToHost::Event(_) | ToHost::Sent(_) => Category::Event,
                };
                self.writing.push_back(item);
                bytes.with(category, each)
            });
        self.batches.push_back(batch);
        self.flushing = !self.ready.is_empty();
        Some(Write::Entries(bytes))
    }

    fn next_data(&mut self) -> Option<Write> {
        loop {
            let (state, item) = self.data.get_mut(self.submitting)?;
            self.submitting += 1;
            let bytes = crossings::of_upcall(item).data();
            if bytes.total() > 0 {
                *state = State::UnderWay;
                return Some(Write::Data(bytes));
            }
            *state = State::Written;
        }
    }

    /// Moves on what has all its data in host memory.
    fn settle(&mut self, now: Time, delay: Span) {
        let is_written = |(state, item): &(State, ToHost<Symbolic>)| match state {
            State::Written => true,
            State::Waits => crossings::of_upcall(item).data().total() == 0,
            State::UnderWay => false,
        };
        while self.data.front().is_some_and(is_written)
            && let Some((_, item)) = self.data.pop_front()
        {
            self.submitting = self.submitting.saturating_sub(1);
            self.ready.push_back(item);
            self.expect(now + delay);
        }
        if self.ready.len() >= self.events_at_once {
            self.flush();
        }
    }

    fn expect(&mut self, due: Time) {
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }
}

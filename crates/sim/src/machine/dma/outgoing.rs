//! Frames that wait for data from host memory.

use crate::config::DmaConfig;
use crate::hardware::Wire;
use baton_bus::Category;
use baton_nic::Outgoing as Frame;
use baton_tcp::{Segment, Symbolic};
use baton_wire::{Span, Time, line_len};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// One DMA: contiguous host memory with one kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Part {
    pub(in super::super) category: Category,
    pub(in super::super) bytes: u32,
}

/// What one piece of work reads.
pub(in super::super) type Parts = SmallVec<[Part; 4]>;

/// What leaves the NIC when its data is there.
#[derive(Debug, Default)]
pub(in super::super) struct Release {
    pub(in super::super) frames: SmallVec<[Frame<Symbolic>; 1]>,
    /// Packets of the host that these frames complete.
    pub(in super::super) sent: u32,
}

impl Release {
    /// When it must be known that they leave now or later: not before the first frame can have crossed `wire`, nor before what
    /// was sent is reported, `report` after that.
    pub(in super::super) fn needed(
        &self,
        now: Time,
        wire: &Wire<Segment<Symbolic>>,
        report: Span,
    ) -> Time {
        let arrives = self.frames.first().map_or(Time::NEVER, |frame| {
            wire.earliest_arrival(now, frame.segment.frame_len())
        });
        if self.sent == 0 {
            return arrives;
        }
        arrives.min(now + report)
    }

    /// Bytes of the frames on the wire.
    fn line_bytes(&self) -> u64 {
        let frames = self.frames.iter();
        frames
            .map(|frame| line_len(frame.segment.frame_len()) as u64)
            .sum()
    }
}

/// A piece of work that read host memory.
#[derive(Debug)]
struct Entry {
    parts: Parts,
    /// See [`Release::needed`].
    needed: Time,
    submitted: usize,
    done: usize,
    release: Release,
}

/// Pieces of work in order, each until its data is there.
#[derive(Debug)]
pub(in super::super) struct Outgoing {
    /// Reads under way at a time.
    limit: u32,
    /// From the end of a read to the next.
    setup: Span,
    entries: VecDeque<Entry>,
    /// The first entry that may have parts to submit.
    submitting: usize,
    in_flight: u32,
    /// When the engine is set up for the next read.
    ready_at: Time,
    /// The earliest [`Release::needed`] of what waits.
    needed: Time,
    /// Packets of the host that are completed by what waits.
    sent: u32,
    /// Bytes on the wire of the frames that wait.
    line_bytes: u64,
}

impl Outgoing {
    pub(super) fn new(config: &DmaConfig) -> Self {
        Self {
            limit: config.reads_in_flight,
            setup: Span::from_ns(config.read_setup_ns.into()),
            entries: VecDeque::new(),
            submitting: 0,
            in_flight: 0,
            ready_at: Time::ZERO,
            needed: Time::NEVER,
            sent: 0,
            line_bytes: 0,
        }
    }

    /// Whether the engine takes up all parts of a piece of work at once and tells when all are there: if it can have several reads
    /// under way. Then its places are free again for others only when all parts of the piece are there.
    fn chains(&self) -> bool {
        self.limit > 1 && self.setup == Span::ZERO
    }

    /// Pieces of work that wait.
    pub(in super::super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A piece of work read `parts`; `release` waits for them.
    /// That it may leave must be known at `needed`.
    pub(in super::super) fn push(&mut self, parts: Parts, release: Release, needed: Time) {
        self.needed = self.needed.min(needed);
        self.sent += release.sent;
        self.line_bytes += release.line_bytes();
        self.entries.push_back(Entry {
            parts,
            needed,
            submitted: 0,
            done: 0,
            release,
        });
    }

    /// Packets of the host that are completed by what waits.
    pub(super) fn sent(&self) -> u32 {
        self.sent
    }

    /// Bytes on the wire of the frames that wait.
    pub(in super::super) fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    /// Whether parts wait to be submitted.
    fn holds_back(&self) -> bool {
        self.submitting < self.entries.len()
    }

    /// When the engine will be ready, if a read waits for that.
    pub(in super::super) fn engine_at(&self, now: Time) -> Option<Time> {
        (self.ready_at > now && self.holds_back()).then_some(self.ready_at)
    }

    /// Until when it need not be known what has been read: at once if other reads wait for that.
    pub(super) fn patience(&self) -> Time {
        if self.holds_back() {
            return Time::ZERO;
        }
        self.needed
    }

    /// The next part to fetch, if fewer than the limit are under way and the engine is ready, or if it is one of a chain that was
    /// begun. Also says whether to report it in [`Self::read_done`].
    pub(in super::super) fn next_part(&mut self, now: Time) -> Option<(Part, bool)> {
        let chains = self.chains();
        while let Some(entry) = self.entries.get_mut(self.submitting) {
            let begun = chains && entry.submitted > 0;
            if !begun && (self.in_flight >= self.limit || self.ready_at > now) {
                return None;
            }
            let part = entry.parts.get(entry.submitted).copied();
            entry.submitted += usize::from(part.is_some());
            let last = entry.submitted == entry.parts.len();
            self.submitting += usize::from(last);
            if let Some(part) = part {
                self.in_flight += 1;
                return Some((part, last || !chains));
            }
        }
        None
    }

    /// The reported part that was submitted first of those under way is there, and all before it: a device's transfers are done in
    /// order. Whether that completes its piece of work.
    pub(in super::super) fn read_done(&mut self, now: Time) -> bool {
        self.ready_at = now + self.setup;
        let chains = self.chains();
        let first = self.entries.front_mut().expect("somebody waits for it");
        let parts = if chains { first.parts.len() } else { 1 };
        self.in_flight -= parts as u32;
        first.done += parts;
        debug_assert!(
            first.done <= first.submitted,
            "what is complete was released"
        );
        first.done == first.parts.len()
    }

    /// What may leave now.
    pub(in super::super) fn pop_complete(&mut self) -> Option<Release> {
        let first = self.entries.front()?;
        if first.done < first.parts.len() {
            return None;
        }
        self.submitting = self.submitting.saturating_sub(1);
        let release = self.entries.pop_front()?.release;
        let rest = self.entries.iter();
        self.needed = rest.fold(Time::NEVER, |first, entry| first.min(entry.needed));
        self.sent -= release.sent;
        self.line_bytes -= release.line_bytes();
        Some(release)
    }
}

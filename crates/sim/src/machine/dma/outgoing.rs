//! Frames that wait for data from host memory.

use crate::config::DmaConfig;
use baton_bus::Fifo;
use baton_bus::interconnect::Piece;
use baton_nic::Outgoing as Frame;
use baton_wire::{Span, Symbolic, Time, line_len};
use smallvec::SmallVec;

/// What one piece of work reads: one DMA for each.
pub(in super::super) type Parts = SmallVec<[Piece; 4]>;

/// What leaves the NIC when its data is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Release {
    /// Frames: the oldest that wait.
    pub(in super::super) frames: usize,
    /// Packets of the host that these frames complete.
    pub(in super::super) sent: u32,
    /// Bytes of the frames on the wire.
    line_bytes: u64,
}

impl Release {
    /// Whether nothing leaves.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.frames == 0 && self.sent == 0
    }
}

/// A piece of work that read host memory.
#[derive(Debug)]
struct Entry {
    parts: Parts,
    /// When it must be known that it is complete, at the latest: no later than that of those behind it.
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
    entries: Fifo<Entry>,
    /// Their frames, each with its length.
    frames: Fifo<(usize, Frame<Symbolic>)>,
    /// The first entry that may have parts to submit.
    submitting: usize,
    in_flight: u32,
    /// When the engine is set up for the next read.
    ready_at: Time,
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
            entries: Fifo::new(),
            frames: Fifo::new(),
            submitting: 0,
            in_flight: 0,
            ready_at: Time::ZERO,
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

    /// Keeps a frame of the piece of work that is [pushed](Self::push) next, as a part of its `release`. Gives its length.
    pub(in super::super) fn keep(
        &mut self,
        frame: Frame<Symbolic>,
        release: &mut Release,
    ) -> usize {
        let frame_len = frame.segment.frame_len();
        release.frames += 1;
        release.line_bytes += line_len(frame_len) as u64;
        self.frames.push((frame_len, frame));
        frame_len
    }

    /// A piece of work read `parts`; `release` waits for them.
    /// That it may leave must be known at `needed`.
    pub(in super::super) fn push(&mut self, parts: Parts, release: Release, needed: Time) {
        // Of what is known at that time all before it is known as well.
        for earlier in self.entries.iter_mut().rev() {
            if earlier.needed <= needed {
                break;
            }
            earlier.needed = needed;
        }
        self.sent += release.sent;
        self.line_bytes += release.line_bytes;
        self.entries.push(Entry {
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
    #[inline]
    pub(super) fn holds_back(&self) -> bool {
        self.submitting < self.entries.len()
    }

    /// When the engine will be ready, if a read waits for that.
    pub(in super::super) fn engine_at(&self, now: Time) -> Option<Time> {
        (self.ready_at > now && self.holds_back()).then_some(self.ready_at)
    }

    /// Until when it need not be known what has been read: at once if other reads wait for that.
    pub(super) fn lookahead(&self) -> Time {
        if self.holds_back() {
            return Time::ZERO;
        }
        let first = self.entries.front();
        first.map_or(Time::NEVER, |first| first.needed)
    }

    /// The next reads, if fewer than the limit are under way and the engine is ready: all parts of a piece of work as a chain, or
    /// one part. [`Self::read_done`] is to be called when they are done.
    #[inline]
    pub(in super::super) fn next_reads(&mut self, now: Time) -> Option<&[Piece]> {
        let chains = self.chains();
        while self.holds_back() {
            if self.in_flight >= self.limit || self.ready_at > now {
                return None;
            }
            let place = self.submitting;
            let entry = &mut self.entries[place];
            let from = entry.submitted;
            let all = entry.parts.len();
            let to = if chains { all } else { all.min(from + 1) };
            entry.submitted = to;
            self.submitting += usize::from(to == all);
            if from < to {
                self.in_flight += (to - from) as u32;
                return Some(&self.entries[place].parts[from..to]);
            }
        }
        None
    }

    /// The reads that were begun first of those under way are done, and all before them: a device's transfers are done in
    /// order. Whether that completes their piece of work.
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

    /// Whether something may leave now.
    #[inline]
    pub(in super::super) fn is_complete(&self) -> bool {
        let first = self.entries.front();
        first.is_some_and(|first| first.done == first.parts.len())
    }

    /// What may leave now: take its frames from [`Self::next_frame`].
    pub(in super::super) fn pop_complete(&mut self) -> Option<Release> {
        if !self.is_complete() {
            return None;
        }
        let first = self.entries.front()?;
        let release = first.release;
        self.submitting = self.submitting.saturating_sub(1);
        self.entries.pop();
        self.sent -= release.sent;
        self.line_bytes -= release.line_bytes;
        Some(release)
    }

    /// The next frame that may leave, and its length.
    pub(in super::super) fn next_frame(&mut self) -> (usize, Frame<Symbolic>) {
        self.frames
            .pop()
            .expect("each frame of a piece of work waits here")
    }
}

//! A device's transfer that waits for the bus.

use std::slice;

use baton_wire::{Span, Time};
use smallvec::SmallVec;

use super::rules::{Rules, Run};
use crate::BytesByCategory;
use crate::interconnect::job::Job;
use crate::interconnect::{DeviceId, Piece, Transfer};

/// The remaining part of a transfer, or of the reads of a scatter list.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) job: Job,
    /// Duration from the first address phase to the last data phase if no other master wants the bus; zero if the bus does other things
    /// between the bursts.
    pub(super) time: Span,
    /// Number of reads of the scatter list; 1 for any other transfer.
    pub(super) transfers: u32,
    /// Whether bursts of the first contiguous piece have been made, or part of it has been requested.
    pub(super) started: bool,
    /// Bytes of the other pieces.
    further: SmallVec<[u32; 4]>,
}

/// A burst within a run of bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    /// Time before the data.
    pub(super) head: Span,
    pub(super) bytes: u64,
}

impl Queued {
    /// Creates one transfer of contiguous memory.
    pub(super) fn one(now: Time, transfer: Transfer, rules: &Rules) -> Self {
        let bytes = transfer.bytes.total();
        let run = rules.run_of(transfer.operation);
        Self {
            job: Job::new(now, transfer),
            time: run.map_or(Span::ZERO, |run| rules.run_time(run, bytes, false)),
            transfers: 1,
            started: false,
            further: SmallVec::new(),
        }
    }

    /// Creates the reads of all `pieces`.
    pub(super) fn list(
        now: Time,
        (device, tag): (DeviceId, u64),
        pieces: &[Piece],
        rules: &Rules,
    ) -> Self {
        let mut queued = Self {
            job: Job::new(now, Piece::read_all(pieces, device, tag)),
            time: Span::ZERO,
            transfers: pieces.len() as u32,
            started: false,
            further: SmallVec::new(),
        };
        for piece in pieces.iter().skip(1) {
            queued.further.push(piece.bytes);
        }
        queued.time = queued.time_left(rules);
        queued
    }

    /// Returns whether this transfer is known to complete no earlier than `before`, a reported transfer ahead of it in the queue.
    pub(super) fn is_later_than(&self, before: &Self, rules: &Rules) -> bool {
        let after_data = |queued: &Self| rules.after_data(queued.job.transfer.operation);
        before.job.transfer.reported
            && before.time > Span::ZERO
            && rules.between_bursts + self.time + after_data(self) >= after_data(before)
    }

    /// Returns the remaining bytes of the first piece.
    fn first_bytes(&self) -> u64 {
        let left = self.job.left_bytes();
        let further = self.further.iter();
        further.fold(left, |left, &bytes| left - u64::from(bytes))
    }

    /// Computes [`Self::time`].
    fn time_left(&self, rules: &Rules) -> Span {
        let Some(run) = rules.run_of(self.job.transfer.operation) else {
            return Span::ZERO;
        };
        let first = rules.run_time(run, self.first_bytes(), self.started);
        self.further.iter().fold(first, |time, &bytes| {
            time + rules.between_bursts + rules.run_time(run, bytes.into(), false)
        })
    }

    /// Returns the remaining bursts, if there are several and they follow each other.
    pub(super) fn bursts<'a>(&'a self, rules: &'a Rules) -> Option<Bursts<'a>> {
        let run = rules.run_of(self.job.transfer.operation)?;
        if self.further.is_empty() && self.job.left_bytes() <= run.burst_bytes.get() {
            return None;
        }
        Some(Bursts {
            run,
            left: Some(self.first_bytes()),
            started: self.started,
            further: self.further.iter(),
        })
    }

    /// Moves `bytes`, which must be fewer than remain, and returns them by category.
    pub(super) fn take(&mut self, bytes: u64, rules: &Rules) -> BytesByCategory {
        let (mut rest, mut piece, mut over) = (bytes, self.first_bytes(), 0);
        while rest >= piece {
            rest -= piece;
            piece = self.further[over].into();
            over += 1;
        }
        self.further.drain(..over);
        self.started = rest > 0 || (self.started && over == 0);
        let moved = self.job.take(bytes);
        self.time = self.time_left(rules);
        moved
    }
}

/// The remaining bursts of a transfer.
pub(super) struct Bursts<'a> {
    run: &'a Run,
    /// Remaining bytes of the current piece; `None` at the end.
    left: Option<u64>,
    /// Whether bursts of the current piece have been made.
    started: bool,
    further: slice::Iter<'a, u32>,
}

impl Iterator for Bursts<'_> {
    type Item = Burst;

    fn next(&mut self) -> Option<Burst> {
        let left = self.left?;
        let head = if self.started {
            self.run.next
        } else {
            self.run.first
        };
        let bytes = left.min(self.run.burst_bytes.get());
        self.started = bytes < left;
        self.left = if self.started {
            Some(left - bytes)
        } else {
            self.further.next().map(|&bytes| bytes.into())
        };
        Some(Burst { head, bytes })
    }
}

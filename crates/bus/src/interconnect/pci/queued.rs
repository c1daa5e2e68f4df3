//! A device's transfer that waits for the bus.

use smallvec::SmallVec;

use super::rules::{Phases, ReadRule, Rules};
use crate::interconnect::Operation;
use crate::interconnect::job::Job;

/// A transfer, or the reads of a scatter list, and what is left of them.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) job: Job,
    /// Bytes that are left of each piece of contiguous memory.
    pieces: SmallVec<[u64; 4]>,
    /// Reads of the scatter list; 1 for any other transfer.
    pub(super) transfers: u32,
    /// Clocks from the first address phase to the last data phase if no other master wants the bus, for those of which the bus carries
    /// out burst after burst.
    pub(super) clocks: u64,
}

/// How the bursts of a transfer look.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    /// The first of a piece.
    first: Phases,
    /// The others.
    next: Phases,
}

/// A burst within a run of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    /// Clocks before its data.
    pub(super) head: u64,
    pub(super) bytes: u64,
}

impl Queued {
    /// What `job` asks for lies in `pieces`.
    pub(super) fn new(job: Job, pieces: impl Iterator<Item = u64>, rules: &Rules) -> Self {
        let pieces: SmallVec<[u64; 4]> = pieces.collect();
        let mut queued = Self {
            job,
            transfers: pieces.len() as u32,
            pieces,
            clocks: 0,
        };
        queued.clocks = queued.clocks_left(rules, false);
        queued
    }

    /// How its bursts follow each other; `None` if the bus does other things between them.
    fn bursts(&self, rules: &Rules) -> Option<Bursts> {
        if self.job.operation != Operation::DmaRead {
            let (first, next) = (rules.write, rules.write);
            return Some(Bursts { first, next });
        }
        match rules.read {
            ReadRule::Waits { first, next } => Some(Bursts { first, next }),
            ReadRule::Delayed { .. } | ReadRule::Split { .. } => None,
        }
    }

    /// See [`Self::clocks`]. Bursts of the first piece have been made if it is `started`.
    fn clocks_left(&self, rules: &Rules, started: bool) -> u64 {
        let Some(Bursts { first, next }) = self.bursts(rules) else {
            return 0;
        };
        let between = rules.between_bursts();
        let (mut clocks, mut head) = (0, if started { next.head } else { first.head });
        for &bytes in &self.pieces {
            let bursts = next.burst_bytes.count(bytes).max(1);
            clocks += head + (bursts - 1) * next.head + bursts * between + rules.data_clocks(bytes);
            head = first.head;
        }
        clocks - between
    }

    /// Its bursts from now on.
    pub(super) fn run(&self, rules: &Rules, started: bool) -> impl Iterator<Item = Burst> {
        let bursts = self.bursts(rules);
        let mut pieces = self.pieces.iter();
        let (mut left, mut next) = (pieces.next().copied(), started);
        std::iter::from_fn(move || {
            let phases = bursts?;
            let phases = if next { phases.next } else { phases.first };
            let bytes = left?.min(phases.burst_bytes.get());
            left = left.map(|left| left - bytes).filter(|&left| left > 0);
            next = left.is_some();
            left = left.or_else(|| pieces.next().copied());
            Some(Burst {
                head: phases.head,
                bytes,
            })
        })
    }

    /// `bytes` have been moved, and more are left. Whether they were a part of the piece that is now the first.
    pub(super) fn moved(&mut self, mut bytes: u64, started: bool, rules: &Rules) -> bool {
        let mut over = 0;
        while bytes >= self.pieces[over] {
            bytes -= self.pieces[over];
            over += 1;
        }
        self.pieces.drain(..over);
        self.pieces[0] -= bytes;
        let started = bytes > 0 || (started && over == 0);
        self.clocks = self.clocks_left(rules, started);
        started
    }
}

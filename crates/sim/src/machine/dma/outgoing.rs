//! Frames that wait for data from host memory.

use baton_bus::Category;
use baton_nic::Outgoing as Frame;
use baton_tcp::Symbolic;
use baton_wire::Time;
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

/// A piece of work that read host memory.
#[derive(Debug)]
struct Entry {
    parts: Parts,
    submitted: usize,
    done: usize,
    release: Release,
}

/// Pieces of work in order, each until its data is there.
#[derive(Debug, Default)]
pub(in super::super) struct Outgoing {
    entries: VecDeque<Entry>,
    /// The first entry that may have parts to submit.
    submitting: usize,
    in_flight: u32,
    /// When the engine is set up for the next read.
    ready_at: Time,
}

impl Outgoing {
    /// Pieces of work that wait.
    pub(in super::super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A piece of work read `parts`; `release` waits for them.
    pub(in super::super) fn push(&mut self, parts: Parts, release: Release) {
        self.entries.push_back(Entry {
            parts,
            submitted: 0,
            done: 0,
            release,
        });
    }

    /// When the engine will be ready for another read, if it is not.
    pub(in super::super) fn ready_after(&self, now: Time) -> Option<Time> {
        (self.ready_at > now).then_some(self.ready_at)
    }

    /// The next part to fetch, if fewer than `limit` are under way and the engine is ready.
    pub(in super::super) fn next_part(&mut self, now: Time, limit: u32) -> Option<Part> {
        if self.in_flight >= limit || self.ready_at > now {
            return None;
        }
        while let Some(entry) = self.entries.get_mut(self.submitting) {
            if let Some(&part) = entry.parts.get(entry.submitted) {
                entry.submitted += 1;
                self.in_flight += 1;
                return Some(part);
            }
            self.submitting += 1;
        }
        None
    }

    /// The part that was submitted first of those under way is there: a device's transfers are done in order. Whether that
    /// completes its piece of work. The engine is ready for the next at `ready_at`.
    pub(in super::super) fn part_done(&mut self, ready_at: Time) -> bool {
        self.in_flight -= 1;
        self.ready_at = ready_at;
        let first = self.entries.front_mut().expect("somebody waits for it");
        first.done += 1;
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
        self.entries.pop_front().map(|entry| entry.release)
    }
}

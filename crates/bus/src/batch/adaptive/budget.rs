//! Limits the time that entries may wait.

use super::LONGEST_WAIT;
use baton_wire::{Span, Time};

/// Waiting may take one part in this many of the time that work takes.
pub(super) const SHARE: u64 = 9;

/// The budget is divided among about this many batches.
const BATCHES: u64 = 8;

/// Maximum budget: one longest wait for every this many connections that work at the same time, but at least one longest wait.
const CONNECTIONS_FOR_A_WAIT: u64 = 8;

/// Number of sockets whose last entry is remembered. For other sockets, the policy assumes the mean duration of work. Short work is
/// remembered more often, so with very many sockets the budget is rather too small.
const FLOWS: usize = 1024;

/// The time that entries may still wait. The completion of work shows how long the work took, since the last entry of the same socket; that
/// is the socket's part of the response time, and a share of it is added to the budget. A client's think time ends with an awaited entry
/// and adds nothing.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    left: Span,
    last_entries: Vec<Option<(u32, Time)>>,
    mean_work: Span,
    concurrency: Concurrency,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            left: Span::ZERO,
            last_entries: vec![None; FLOWS],
            mean_work: Span::ZERO,
            concurrency: Concurrency::default(),
        }
    }

    /// Records that an entry about `flow` was queued. `ends_work` says whether the entry is lazy, and so completes work.
    pub(super) fn handle_entry(&mut self, now: Time, flow: u32, ends_work: bool) {
        let before = self.last_entries[flow as usize % FLOWS].replace((flow, now));
        if !ends_work {
            return;
        }
        let work = match before {
            Some((same, since)) if same == flow => {
                let all_work = now.saturating_since(since);
                self.concurrency.handle_work(now, all_work);
                let work = all_work.min(LONGEST_WAIT);
                self.mean_work = (self.mean_work * 15 + work) / 16;
                work
            }
            Some(_) => self.mean_work,
            None => Span::ZERO,
        };
        let most = LONGEST_WAIT * (self.concurrency.mean() / CONNECTIONS_FOR_A_WAIT).max(1);
        self.left = (self.left + work / SHARE).min(most);
    }

    /// Returns the allowance of one batch: only a part of the budget, because batches of equal size save most.
    pub(super) fn for_one_batch(&self) -> Span {
        self.left / BATCHES
    }

    /// Subtracts the cost of waits.
    pub(super) fn spend(&mut self, cost: Span) {
        self.left = self.left.saturating_sub(cost);
    }
}

/// Longest duration that counts as work. Longer work mostly waits for a client.
const LONGEST_WORK: Span = Span::from_secs(1);

/// Approximate length of the past that the estimate covers.
const MEMORY: Span = Span::from_ms(100);

/// Estimates how many connections work at the same time: the total duration of work, divided by the elapsed time (Little's law).
#[derive(Clone, Debug, Default)]
struct Concurrency {
    work: Span,
    time: Span,
    last: Option<Time>,
}

impl Concurrency {
    /// Records work of this duration that ended at `now`.
    fn handle_work(&mut self, now: Time, work: Span) {
        let last = self.last.replace(now).unwrap_or(now);
        self.time += now.saturating_since(last);
        self.work += work.min(LONGEST_WORK);
        if self.time > MEMORY {
            self.time = self.time / 2;
            self.work = self.work / 2;
        }
    }

    fn mean(&self) -> u64 {
        // The estimate is unreliable over shorter times.
        self.work.as_ps() / self.time.max(LONGEST_WAIT).as_ps()
    }
}

/// Maximum number of chances to wait that are skipped.
const MOST_SKIPPED: u32 = 4095;

/// Skips chances to wait after waits that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    skip: u32,
    left: u32,
}

impl Backoff {
    /// Returns whether to use this chance to wait.
    pub(super) fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }

    /// Records the end of a wait. `paid` says whether another entry arrived meanwhile.
    pub(super) fn handle_wait(&mut self, paid: bool) {
        self.skip = if paid {
            self.skip / 2
        } else {
            (self.skip * 2 + 1).min(MOST_SKIPPED)
        };
        self.left = self.skip;
    }
}

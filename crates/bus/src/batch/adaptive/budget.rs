//! How much waiting there may be.

use super::LONGEST_WAIT;
use baton_wire::{Span, Time};

/// Waiting may take one part in so many of the time that work takes.
pub(super) const SHARE: u64 = 9;

/// The budget is kept for about so many batches.
const BATCHES: u64 = 8;

/// What is kept at most is the longest wait for each so many connections that work at the same time. Fewer have that much, too.
const CONNECTIONS_FOR_A_WAIT: u64 = 8;

/// Sockets whose last entry is remembered. Of others, the work is taken to be as long as it is in the mean; short work is remembered more
/// often, so with very many sockets the budget is rather too small.
const FLOWS: usize = 1024;

/// What may be spent on waiting. A completion that nobody waits for says how long the work before it took, since the last entry of
/// the same socket; that is the socket's part of the response time, and a share of it is added. Time in which a client
/// thinks ends with an entry that somebody waits for, and adds nothing.
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

    /// An entry about `flow` was queued; `ends_work` if nobody waits for it.
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

    /// What one batch may spend: only a part, because batches of equal size save most.
    pub(super) fn for_one_batch(&self) -> Span {
        self.left / BATCHES
    }

    /// Waits have cost so much.
    pub(super) fn spend(&mut self, cost: Span) {
        self.left = self.left.saturating_sub(cost);
    }
}

/// Work counts for so long at most: what takes longer mostly waits for a client.
const LONGEST_WORK: Span = Span::from_secs(1);

/// About so much of the past is remembered.
const MEMORY: Span = Span::from_ms(100);

/// How many connections work at the same time: the time that all take for their work, over the time that passes (Little's law).
#[derive(Clone, Debug, Default)]
struct Concurrency {
    work: Span,
    time: Span,
    last: Option<Time>,
}

impl Concurrency {
    /// Work that took so long ends at `now`.
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
        // Of a shorter time nothing is known yet.
        self.work.as_ps() / self.time.max(LONGEST_WAIT).as_ps()
    }
}

/// The most chances to wait that are let pass.
const MOST_SKIPPED: u32 = 4095;

/// Chances to wait that are let pass because waiting was in vain.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    skip: u32,
    left: u32,
}

impl Backoff {
    /// Whether this chance may be taken.
    pub(super) fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }

    /// A wait is over; it was not in vain if another entry came.
    pub(super) fn handle_wait(&mut self, paid: bool) {
        self.skip = if paid {
            self.skip / 2
        } else {
            (self.skip * 2 + 1).min(MOST_SKIPPED)
        };
        self.left = self.skip;
    }
}

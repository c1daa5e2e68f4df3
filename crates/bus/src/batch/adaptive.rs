//! Batching that needs no tuning.
//!
//! Batching saves crossings at the expense of response time. For every entry, the policy therefore considers who waits for it
//! ([`Urgency`]):
//!
//! - *Nobody* ([`Urgency::Lazy`]). The entry is held back, to be transferred together with the next awaited entry. The policy learns how
//!   soon that arrives ([`HoldTime`]) and holds entries for four times as long, so that the timer is a last resort. If the other side turns
//!   out to stall until such entries arrive, they go immediately.
//! - *Somebody* ([`Urgency::Awaited`]). The entry goes immediately unless there is budget and waiting pays. The [`Budget`] is one part in 9
//!   of the time that connections take for their work, so response times grow by no more than that. Spending it is the dynamic
//!   acknowledgment problem (Dooly, Goldman and Scott, 1998), with the same solution: a batch goes when the waiting times of its entries
//!   add up to the allowance. Waiting pays if the mean gap between entries is within the budget and earlier waits were not in vain; after
//!   each vain wait, the policy skips twice as many chances ([`Backoff`]).
//! - [`Urgency::AtOnce`] entries never wait.
//!
//! At low load, gaps are long and the budget is small: awaited entries go immediately, together with lazy entries. At high load, many
//! connections work at the same time, their total budget grows faster than gaps pass, and batches grow with the number of connections.
//!
//! A side whose entries are all awaited has no budget, because it observes no end of work. It delays nothing, and only requests of the same
//! piece of work leave together. All arithmetic is on integers, and all state belongs to this queue.

mod budget;
mod hold_time;
#[cfg(test)]
mod tests;

use super::{BatchingRule, Urgency};
use baton_wire::{Span, Time};
use budget::{Backoff, Budget};
use hold_time::HoldTime;

/// Longest time that any entry waits. Far above what the policy normally chooses.
pub(super) const LONGEST_WAIT: Span = Span::from_ms(10);

/// Number of mean gaps without another entry after which a wait has failed.
const GAPS_IN_VAIN: u64 = 4;

/// The state of the policy.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    most_waiting: u32,
    budget: Budget,
    backoff: Backoff,
    hold_time: HoldTime,
    /// Mean time between awaited entries.
    gap: Span,
    last_awaited: Option<Time>,
    /// Time since which lazy entries wait.
    first_lazy: Option<Time>,
    hold: Option<Hold>,
}

/// Awaited entries of the current batch.
#[derive(Clone, Debug)]
struct Hold {
    first: Time,
    last: Time,
    entries: u64,
    /// Total cost that their waits may have; zero if they must not wait.
    allowance: Span,
    /// Total cost of their waits up to `charged_until`.
    cost: Span,
    charged_until: Time,
}

impl Hold {
    fn new(now: Time, allowance: Span) -> Self {
        Self {
            first: now,
            last: now,
            entries: 0,
            allowance,
            cost: Span::ZERO,
            charged_until: now,
        }
    }

    fn charge(&mut self, now: Time) {
        let wait = now.saturating_since(self.charged_until);
        self.cost += wait * self.entries;
        self.charged_until = now;
    }

    fn deadline(&self, gap: Span) -> Time {
        let left = self.allowance.saturating_sub(self.cost) / self.entries.max(1);
        let in_vain = self.last + gap * GAPS_IN_VAIN;
        let at_the_latest = self.first + LONGEST_WAIT;
        (self.charged_until + left).min(in_vain).min(at_the_latest)
    }
}

impl BatchingRule for Adaptive {
    /// Returns half of the ring's depth, so that the ring has space while a batch is transferred.
    fn most_waiting(&self) -> u32 {
        self.most_waiting
    }

    /// Records that an entry about the socket `flow` was queued at `now`. Returns the deadline of the waiting entries.
    fn queued(&mut self, now: Time, flow: u32, urgency: Urgency) -> Time {
        self.hold_time.handle_entry(now);
        let is_lazy = urgency == Urgency::Lazy;
        self.budget.handle_entry(now, flow, is_lazy);
        if is_lazy {
            self.first_lazy.get_or_insert(now);
        } else {
            self.awaited(now);
        }
        match urgency {
            Urgency::AtOnce => now,
            _ => self.deadline(now),
        }
    }

    /// Records that all waiting entries were taken at `now`.
    fn taken(&mut self, now: Time) {
        let first_lazy = self.first_lazy.take();
        let Some(mut hold) = self.hold.take() else {
            if let Some(since) = first_lazy {
                self.hold_time.handle_lone_release(since, now);
            }
            return;
        };
        if hold.allowance > Span::ZERO {
            hold.charge(now);
            self.budget.spend(hold.cost);
            self.backoff.handle_wait(hold.last > hold.first);
        }
    }

    /// Forgets all waiting entries without learning from them.
    fn clear(&mut self) {
        self.first_lazy = None;
        self.hold = None;
    }
}

impl Adaptive {
    /// Creates the policy for a ring of `depth` descriptors.
    pub(super) fn new(depth: u32) -> Self {
        Self {
            most_waiting: depth.div_ceil(2),
            budget: Budget::new(),
            backoff: Backoff::default(),
            hold_time: HoldTime::new(),
            gap: LONGEST_WAIT,
            last_awaited: None,
            first_lazy: None,
            hold: None,
        }
    }

    fn awaited(&mut self, now: Time) {
        self.learn_gap(now);
        if let Some(since) = self.first_lazy
            && self.hold.is_none()
        {
            self.hold_time.handle_companion(now - since);
        }
        let hold = match &mut self.hold {
            Some(hold) => hold,
            empty => {
                let allowance = self.budget.for_one_batch();
                let pays = allowance >= self.gap && self.backoff.is_over();
                empty.insert(Hold::new(now, if pays { allowance } else { Span::ZERO }))
            }
        };
        hold.charge(now);
        hold.last = now;
        hold.entries += 1;
    }

    fn learn_gap(&mut self, now: Time) {
        let last = self.last_awaited.replace(now).unwrap_or(now);
        // Entries that are queued in one piece of work leave together anyway.
        if now > last {
            let gap = (now - last).min(LONGEST_WAIT);
            self.gap = (self.gap * 7 + gap) / 8;
        }
    }

    fn deadline(&self, now: Time) -> Time {
        let lazy = self
            .first_lazy
            .map(|since| since + self.hold_time.hold_time());
        let held = self.hold.as_ref();
        let held = held.map(|hold| hold.deadline(self.gap));
        match (lazy, held) {
            (Some(lazy), Some(held)) => lazy.min(held),
            (lazy, held) => lazy.or(held).unwrap_or(now),
        }
    }
}

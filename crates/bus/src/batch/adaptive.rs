//! Batching that needs no tuning.
//!
//! What is to be gained is crossings, what may be lost is response time. So the policy asks of every entry who waits for it
//! ([`Urgency`]), and has one rule for each answer:
//!
//! - *Nobody* ([`Urgency::Lazy`]). It is held back: the next entry that somebody waits for takes along all that wait. How long
//!   that takes is learned ([`HoldTime`]), and four times as long is waited, so that the timer is a last resort. Where the other side
//!   turns out to stand still until such entries come, they go at once.
//! - *Somebody* ([`Urgency::Awaited`]). It goes at once unless there is budget and waiting pays. The [`Budget`] is one part in 9 of
//!   the time that connections take for their work, so response times grow by no more than that. Spending it is the dynamic
//!   acknowledgment problem (Dooly, Goldman and Scott, 1998), and so is its answer: a batch goes when the waiting times of its entries
//!   add up to what may be spent. Waiting pays if the mean gap between entries is within the budget and earlier waits were not in vain;
//!   after each that was, twice as many chances are let pass ([`Backoff`]).
//! - [`Urgency::AtOnce`] is what it says.
//!
//! At low load gaps are long and the budget is small: what somebody waits for goes at once, with what nobody waits for. At high load many
//! connections work at the same time, the budget of all of them grows faster than gaps pass, and batches grow with the number of
//! connections.
//!
//! A side whose entries are all awaited has no budget, because it sees no work end; it delays nothing, and what leaves together are the
//! requests of one turn. All arithmetic is on integers, all state is of this queue.

mod budget;
mod hold_time;
#[cfg(test)]
mod tests;

use super::{BatchingRule, Urgency};
use baton_wire::{Span, Time};
use budget::{Backoff, Budget};
use hold_time::HoldTime;

/// The longest that any entry waits. Far above what the policy sets as a rule.
pub(super) const LONGEST_WAIT: Span = Span::from_ms(10);

/// After so many mean gaps without another entry a wait is in vain.
const GAPS_IN_VAIN: u64 = 4;

/// The state of the policy.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    most_waiting: u32,
    budget: Budget,
    backoff: Backoff,
    hold_time: HoldTime,
    /// Mean time between entries that somebody waits for.
    gap: Span,
    last_awaited: Option<Time>,
    /// Since when something waits that nobody waits for.
    first_lazy: Option<Time>,
    hold: Option<Hold>,
}

/// Entries of the batch that somebody waits for.
#[derive(Clone, Debug)]
struct Hold {
    first: Time,
    last: Time,
    entries: u64,
    /// What their waits may cost in all; zero when they are not to wait.
    allowance: Span,
    /// What their waits have cost up to `charged_until`.
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
    /// Entries that never wait for more: half of the ring, so that there is room while they are transferred.
    fn most_waiting(&self) -> u32 {
        self.most_waiting
    }

    /// An entry about the socket `flow` was queued at `now`; gives when what waits is due.
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

    /// All that waited was taken at `now`.
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

    /// Nothing waits any more, and nothing is to be learned from that.
    fn clear(&mut self) {
        self.first_lazy = None;
        self.hold = None;
    }
}

impl Adaptive {
    /// The policy of a ring of `depth` descriptors.
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
        // What is queued in one piece of work leaves together anyway.
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

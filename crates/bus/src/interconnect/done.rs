//! Transfers that are complete, or whose completion time is known.

use std::cell::Cell;
use std::collections::VecDeque;

use baton_wire::Time;

use super::{Done, Transfer};

/// Completed transfers in the order of [`Done::at`]; at equal times in the order of devices, and for one device in the order in which they
/// were pushed.
#[derive(Clone, Debug, Default)]
pub(super) struct DoneQueue {
    queue: VecDeque<Done>,
    now: Time,
    /// Lower bound of the completion times of transfers that are not in the queue. The bound stays valid while nothing is submitted, so it
    /// is computed again only when its time has passed.
    bound: Cell<Time>,
}

impl DoneQueue {
    /// Advances the time to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time runs forward");
        self.now = now;
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Adds `transfer`, which completes at `at`. Usually it is the last to complete.
    #[inline]
    pub(super) fn push(&mut self, transfer: &Transfer, at: Time) {
        if !transfer.reported {
            return;
        }
        let done = Done {
            device: transfer.device,
            tag: transfer.tag,
            at,
        };
        match self.queue.back() {
            Some(last) if is_before(&done, last) => self.insert(done),
            _ => self.queue.push_back(done),
        }
    }

    #[cold]
    fn insert(&mut self, done: Done) {
        let place = self
            .queue
            .partition_point(|waiting| !is_before(&done, waiting));
        self.queue.insert(place, done);
    }

    /// Removes and returns the next transfer that has completed by now.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Done> {
        if self.queue.front()?.at > self.now {
            return None;
        }
        self.queue.pop_front()
    }

    /// Records the submission of a transfer that is not in the queue and does not complete before `bound`.
    #[inline]
    pub(super) fn expect(&mut self, bound: Time) {
        *self.bound.get_mut() = self.bound.get().min(bound);
    }

    /// Records that another transfer may complete earlier than computed, or that the bound of a new one is unknown.
    pub(super) fn changed(&mut self) {
        self.expect(Time::ZERO);
    }

    /// Returns when the next transfer completes or could complete. `bound` computes the earliest completion of a transfer that is not in
    /// the queue, [`Time::NEVER`] if there is none. It is called only when the old bound has passed, because drivers call this much more
    /// often.
    #[inline]
    pub(super) fn next_at(&self, bound: impl FnOnce() -> Time) -> Option<Time> {
        if self.bound.get() <= self.now {
            self.bound.set(bound());
        }
        let bound = self.bound.get();
        let next = match self.queue.front() {
            Some(done) => done.at.min(bound),
            None => bound,
        };
        (next < Time::NEVER).then_some(next)
    }
}

/// Returns whether `one` comes before `other`, which was pushed earlier.
fn is_before(one: &Done, other: &Done) -> bool {
    (one.at, one.device) < (other.at, other.device)
}

//! Transfers that are done, or are known to be at a later time.

use std::cell::Cell;
use std::collections::VecDeque;

use baton_wire::Time;

use super::{Done, Transfer};

/// In the order of [`Done::at`]; at equal times in that of devices, and for one device in that in which they were pushed.
#[derive(Clone, Debug, Default)]
pub(super) struct DoneQueue {
    queue: VecDeque<Done>,
    now: Time,
    /// No transfer that is not in the queue is done before. It stays true while nothing is submitted, so it is worked out again only
    /// when that time has come.
    bound: Cell<Time>,
}

impl DoneQueue {
    /// Time has come to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time runs forward");
        self.now = now;
    }

    /// The time it has come to.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// `transfer` is done at `at`. Nearly always it is the last to be.
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

    /// The next, if it is done by now.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Done> {
        if self.queue.front()?.at > self.now {
            return None;
        }
        self.queue.pop_front()
    }

    /// Something was submitted that is not in the queue and not done before `bound`: then that is to be worked out again.
    #[inline]
    pub(super) fn expect(&mut self, bound: Time) {
        *self.bound.get_mut() = self.bound.get().min(bound);
    }

    /// Something was submitted that makes another transfer come earlier, or nobody knows when it can be done.
    pub(super) fn changed(&mut self) {
        self.expect(Time::ZERO);
    }

    /// When the next is done, or could be: `bound` says when the first that is not in the queue could, [`Time::NEVER`] if there is
    /// none. It is asked only when that has come, since drivers want to know this much more often.
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

/// Whether `one` comes before `other`, which was pushed earlier.
fn is_before(one: &Done, other: &Done) -> bool {
    (one.at, one.device) < (other.at, other.device)
}

//! Transfers that are done, or are known to be at a later time.

use std::collections::VecDeque;

use baton_wire::Time;

use super::Done;

/// In the order of [`Done::at`]; at equal times in that of devices, and for one device in that in which they were pushed.
#[derive(Clone, Debug, Default)]
pub(super) struct DoneQueue {
    queue: VecDeque<Done>,
    now: Time,
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

    pub(super) fn push(&mut self, done: Done) {
        let before = |waiting: &Done| (waiting.at, waiting.device) <= (done.at, done.device);
        let mut place = self.queue.len();
        while place > 0 && !before(&self.queue[place - 1]) {
            place -= 1;
        }
        if place == self.queue.len() {
            self.queue.push_back(done);
        } else {
            self.queue.insert(place, done);
        }
    }

    /// The next, if it is done by now.
    pub(super) fn pop(&mut self) -> Option<Done> {
        let due = self.queue.front()?.at <= self.now;
        due.then(|| self.queue.pop_front())?
    }

    /// When the next is done.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.queue.front().map(|done| done.at)
    }
}

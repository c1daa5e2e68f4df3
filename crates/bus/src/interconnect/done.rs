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
        let later = self
            .queue
            .iter()
            .rev()
            .take_while(|waiting| (waiting.at, waiting.device) > (done.at, done.device))
            .count();
        self.queue.insert(self.queue.len() - later, done);
    }

    /// The next, if it is done by now.
    pub(super) fn pop(&mut self) -> Option<Done> {
        self.queue.pop_front_if(|done| done.at <= self.now)
    }

    /// When the next is done.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.queue.front().map(|done| done.at)
    }
}

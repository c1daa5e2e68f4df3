//! Timers of corks (batching 3.1, "cork timer").

use baton_wire::Time;
use std::collections::VecDeque;

/// Deadlines of corks. All timers have the same duration, so they expire in the order in which they were set. A cancelled timer stays in
/// the queue until it reaches the front: the socket knows whether it is still valid.
#[derive(Clone, Debug, Default)]
pub(super) struct CorkTimers {
    queue: VecDeque<(Time, u32)>,
}

impl CorkTimers {
    /// Makes the cork of `socket` expire at `deadline`, which is not before any deadline set earlier.
    pub fn set(&mut self, deadline: Time, socket: u32) {
        debug_assert!(self.queue.back().is_none_or(|&(last, _)| last <= deadline));
        self.queue.push_back((deadline, socket));
    }

    /// Removes cancelled timers at the front, or all of them if there are more than `most` timers.
    pub fn tidy(&mut self, most: usize, holds: impl Fn(Time, u32) -> bool) {
        while let Some(&(deadline, socket)) = self.queue.front()
            && !holds(deadline, socket)
        {
            self.queue.pop_front();
        }
        if self.queue.len() > most {
            self.queue
                .retain(|&(deadline, socket)| holds(deadline, socket));
        }
    }

    /// Removes and returns the next timer that expires at `now`, possibly a cancelled one.
    pub fn pop(&mut self, now: Time) -> Option<(Time, u32)> {
        self.queue
            .pop_front_if(|&mut (deadline, _)| deadline <= now)
    }

    /// Returns when the next timer expires.
    pub fn next(&self) -> Option<Time> {
        self.queue.front().map(|&(deadline, _)| deadline)
    }

    /// Returns the timers that were not removed.
    pub fn iter(&self) -> impl Iterator<Item = (Time, u32)> + '_ {
        self.queue.iter().copied()
    }
}

//! When corks give up holding data back (batching 3.1, "cork timer").

use baton_wire::Time;
use std::collections::VecDeque;

/// Deadlines of corks. All run equally long, so the first set is the first to fire. One that was taken back stays until it comes to the
/// front: whether it still holds is the socket's to know.
#[derive(Clone, Debug, Default)]
pub(super) struct CorkTimers {
    queue: VecDeque<(Time, u32)>,
}

impl CorkTimers {
    /// The cork of `socket` holds data back until `deadline`, which is not before any that was set earlier.
    pub fn set(&mut self, deadline: Time, socket: u32) {
        debug_assert!(self.queue.back().is_none_or(|&(last, _)| last <= deadline));
        self.queue.push_back((deadline, socket));
    }

    /// Forgets those that do not hold any more, as far as that matters: at the front, or everywhere when there are more than `most`.
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

    /// The next that fires at `now`, or would have if it had not been taken back.
    pub fn pop(&mut self, now: Time) -> Option<(Time, u32)> {
        self.queue
            .pop_front_if(|&mut (deadline, _)| deadline <= now)
    }

    /// When the next one fires.
    pub fn next(&self) -> Option<Time> {
        self.queue.front().map(|&(deadline, _)| deadline)
    }

    /// Those that were set and not forgotten.
    pub fn iter(&self) -> impl Iterator<Item = (Time, u32)> + '_ {
        self.queue.iter().copied()
    }
}

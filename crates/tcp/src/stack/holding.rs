//! A stack whose interface takes nothing for a while.

use super::Stack;
use crate::connection::Context;
use baton_wire::{Payload, Time};

impl<P: Payload> Stack<P> {
    /// From now on the interface takes no segments, or takes them again: a queue below that is full, a link that is down.
    /// Meanwhile nothing is given out; connections with data to send try again twice a second, and end by their user timeout, or
    /// when that was often enough. Answers that belong to no connection are dropped.
    pub fn set_held(&mut self, now: Time, held: bool) {
        if std::mem::replace(&mut self.is_held, held) == held || held {
            return;
        }
        let ids: Vec<_> = self.connections().collect();
        for id in ids {
            let conn = &mut self.connections[id.0 as usize];
            if conn.ended.is_none() {
                conn.let_go();
                self.touch(now, id);
            }
        }
    }

    /// What would be sent now is not.
    #[cold]
    #[inline(never)]
    pub(super) fn hold_output(&mut self, now: Time) {
        self.stats.answers_dropped += self.answers.len() as u64;
        self.answers.clear();
        let Self {
            connections,
            profiles,
            stats,
            challenges,
            fast_open,
            wheel,
            output,
            ..
        } = self;
        while let Some(slot) = output.pop_front() {
            let Some(conn) = connections.get_mut(slot as usize).filter(|it| it.queued) else {
                continue;
            };
            conn.queued = false;
            conn.hold(&Context {
                now,
                config: &profiles[conn.profile],
                stats,
                challenges,
                fast_open,
            });
            wheel.schedule(now, slot, conn.next_deadline());
        }
    }
}

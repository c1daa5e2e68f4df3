//! Holding a stack's output while its interface accepts nothing.

use super::Stack;
use crate::connection::Context;
use baton_wire::{Payload, Time};

impl<P: Payload> Stack<P> {
    /// Sets whether the interface accepts no segments, because a queue below TCP is full or the link is down. Meanwhile the stack
    /// sends nothing; connections with data to send try again twice a second, and end by their user timeout or after enough tries.
    /// Answers that belong to no connection are dropped.
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

    /// Drops answers and holds the connections that would send now.
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

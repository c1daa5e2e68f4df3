//! Blocks of connections in TIME-WAIT. FreeBSD 4.x keeps them whole, in all their lists, until 2 MSL have passed (`tcp_timer.c`, `tcp_timer_2msl`) or
//! a SYN opens the connection anew: those who search pass them. Only a server that closes first has any.

use baton_wire::{Flow, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Blocks in TIME-WAIT by their connections.
#[derive(Debug, Default)]
pub(crate) struct TimeWaits {
    blocks: FxHashMap<Flow, (u32, Time)>,
    /// When each wait ends, or would have.
    ends: VecDeque<(Time, Flow)>,
}

impl TimeWaits {
    /// The block of a connection waits until then, which is no earlier than for those before it.
    pub fn add(&mut self, flow: Flow, block: u32, until: Time) {
        self.blocks.insert(flow, (block, until));
        self.ends.push_back((until, flow));
    }

    /// The block of a connection, if it waits.
    pub fn find(&self, flow: &Flow) -> Option<u32> {
        // Most servers have none: then nothing is looked up.
        match self.blocks.is_empty() {
            true => None,
            false => self.blocks.get(flow).map(|&(block, _)| block),
        }
    }

    /// Ends the wait of a connection's block.
    pub fn remove(&mut self, flow: &Flow) {
        self.blocks.remove(flow);
    }

    /// The next block whose wait has ended.
    pub fn poll_over(&mut self, now: Time) -> Option<u32> {
        while let Some((end, flow)) = self.ends.pop_front_if(|(end, _)| *end <= now) {
            if self
                .blocks
                .get(&flow)
                .is_some_and(|&(_, until)| until == end)
            {
                return self.blocks.remove(&flow).map(|(block, _)| block);
            }
        }
        None
    }

    /// Blocks that wait.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }
}

//! Blocks of connections in TIME-WAIT. FreeBSD 4.x keeps the whole block, in all its lists, until 2 MSL have passed (`tcp_timer.c`,
//! `tcp_timer_2msl`) or a SYN reopens the connection, so searches walk past these blocks. Only a server that closes first has any.

use baton_wire::{Flow, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Blocks in TIME-WAIT, by connection.
#[derive(Debug, Default)]
pub(crate) struct TimeWaits {
    blocks: FxHashMap<Flow, (u32, Time)>,
    /// End of each wait, including waits that were removed or restarted.
    ends: VecDeque<(Time, Flow)>,
}

impl TimeWaits {
    /// Keeps the block of a connection until `until`, which must not be earlier than that of any previous block.
    pub fn add(&mut self, flow: Flow, block: u32, until: Time) {
        self.blocks.insert(flow, (block, until));
        self.ends.push_back((until, flow));
    }

    /// Returns the block of a connection in TIME-WAIT.
    pub fn find(&self, flow: &Flow) -> Option<u32> {
        // Most servers have no such block, so avoid the lookup.
        match self.blocks.is_empty() {
            true => None,
            false => self.blocks.get(flow).map(|&(block, _)| block),
        }
    }

    /// Ends the TIME-WAIT of a connection's block.
    pub fn remove(&mut self, flow: &Flow) {
        self.blocks.remove(flow);
    }

    /// Returns the next block whose wait has ended.
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

    /// Returns the number of blocks in TIME-WAIT.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }
}

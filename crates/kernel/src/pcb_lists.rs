//! The lists that contain connection blocks. Walking or changing a list touches the blocks of *other* connections. This is where many
//! connections cost most, because those blocks were last used long ago.
//!
//! The lists follow FreeBSD 4.x: chains of a hash table of fixed size (`TCBHASHSIZE`), searched from the latest entry on; the list of all
//! blocks of the protocol and the list of blocks of a port, which are identical if one server has all connections (`in_pcb.c`); and timers
//! as doubly linked callouts (`kern_timeout.c`). Adding an entry to a list changes the entry before it; removing an entry changes both
//! neighbours. Every received segment restarts the keepalive timer, and every segment that acknowledges data restarts the retransmission
//! timer.

use crate::footprint::{self, Callout};
use crate::lists::{Chains, List};
use crate::meter::Meter;
use baton_wire::Flow;

/// Hash chains and callout lists of all connection blocks, which are identified by number.
#[derive(Debug)]
pub struct PcbLists {
    chains: Chains,
    /// All blocks that are in use.
    all: List,
    keepalive: List,
    retransmit: List,
    /// Blocks in TIME-WAIT.
    two_msl: List,
}

impl PcbLists {
    /// Creates empty lists with `buckets` hash buckets.
    pub fn new(buckets: u32) -> Self {
        Self {
            chains: Chains::new(buckets),
            all: List::default(),
            keepalive: List::default(),
            retransmit: List::default(),
            two_msl: List::default(),
        }
    }

    /// Returns the hash bucket of a connection.
    pub fn bucket(&self, flow: &Flow) -> u32 {
        self.chains.bucket(flow)
    }

    /// Returns the bucket that contains a block, or `None` if the block is not in use.
    pub fn bucket_of(&self, block: u32) -> Option<u32> {
        self.chains.bucket_of(block)
    }

    /// Adds a block to the hash chain and to the list of all blocks.
    pub fn insert<M: Meter>(&mut self, block: u32, bucket: u32, m: &mut M) {
        (self.chains).push(block, bucket, |latest| footprint::tcp_chain_link(m, latest));
        self.all
            .push(block, |other| footprint::tcp_list_links(m, other));
    }

    /// Removes a block from all lists.
    pub fn remove<M: Meter>(&mut self, block: u32, m: &mut M) {
        let link = |other| footprint::tcp_chain_link(m, other);
        if self.chains.remove(block, link).is_none() {
            return;
        }
        self.all
            .remove(block, |other| footprint::tcp_list_links(m, other));
        self.stop_timers(block, m);
        self.two_msl.remove(block, links(m, Callout::TwoMsl));
    }

    /// Starts or restarts the TIME-WAIT of a block, which stays in its hash chain and in the lists of blocks.
    pub fn wait<M: Meter>(&mut self, block: u32, m: &mut M) {
        self.stop_timers(block, m);
        self.two_msl.push(block, links(m, Callout::TwoMsl));
    }

    /// Removes a block from the lists of timers of a connection that is in use.
    pub fn stop_timers<M: Meter>(&mut self, block: u32, m: &mut M) {
        self.keepalive.remove(block, links(m, Callout::Keepalive));
        self.retransmit.remove(block, links(m, Callout::Retransmit));
    }

    /// Charges a search for a connection that has no block yet: it compares all blocks of the connection's chain and then all blocks in the
    /// chain of the socket that listens at the port.
    pub fn search_listener<M: Meter>(&self, flow: &Flow, m: &mut M) {
        self.search(self.bucket(flow), None, m);
        let bucket = self.chains.bucket_of_listener(flow.local.port);
        footprint::tcp_bucket(m, bucket);
        self.search(bucket, None, m);
    }

    /// Charges a search for `block`, which compares the blocks before it, or all blocks of the chain if `block` is not there.
    pub fn search<M: Meter>(&self, bucket: u32, block: Option<u32>, m: &mut M) {
        for &other in self.chains.chain(bucket).iter().rev() {
            if Some(other) == block {
                return;
            }
            footprint::tcp_compare(m, other);
        }
    }

    /// Restarts timers after the block's connection has received a segment, which may have acknowledged data.
    pub fn received<M: Meter>(
        &mut self,
        block: u32,
        acknowledged: bool,
        outstanding: bool,
        m: &mut M,
    ) {
        self.keepalive.push(block, links(m, Callout::Keepalive));
        if acknowledged {
            if outstanding {
                self.retransmit.push(block, links(m, Callout::Retransmit));
            } else {
                self.retransmit.remove(block, links(m, Callout::Retransmit));
            }
        }
    }

    /// Starts the retransmission timer after the block's connection has sent data.
    pub fn sent<M: Meter>(&mut self, block: u32, m: &mut M) {
        if !self.retransmit.contains(block) {
            self.retransmit.push(block, links(m, Callout::Retransmit));
        }
    }

    /// Asserts that chains and blocks are consistent.
    pub fn check(&self) {
        self.chains.check();
    }
}

/// Returns a closure that touches the links of the given callout of other connections.
fn links<M: Meter>(m: &mut M, callout: Callout) -> impl FnMut(u32) {
    move |block| footprint::callout_link(m, block, callout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Access, Layer, NoMeter, Op, Owner, Pool};

    /// Records touches of other connections' blocks.
    #[derive(Default)]
    struct Touched(Vec<u32>);

    impl Meter for Touched {
        fn owner(&mut self, _owner: Owner) {}
        fn run(&mut self, _op: Op, _count: u32) {}
        fn touch(&mut self, _: Layer, pool: Pool, slot: u32, _: u32, _: u32, _: Access) {
            assert_eq!(pool, Pool::Connection);
            self.0.push(slot);
        }
        fn dma(&mut self, _: Pool, _: u32, _: u32, _: u32, _: Access) {}
    }

    #[test]
    fn a_search_compares_the_blocks_in_front() {
        let mut lists = PcbLists::new(4);
        for block in 0..4 {
            lists.insert(block, 1, &mut NoMeter);
        }
        let mut touched = Touched::default();
        lists.search(1, Some(1), &mut touched);
        assert_eq!(touched.0, [3, 3, 2, 2], "version and addresses");
        touched.0.clear();
        lists.search(1, None, &mut touched);
        assert_eq!(touched.0, [3, 3, 2, 2, 1, 1, 0, 0]);
        lists.check();
    }

    #[test]
    fn opening_and_closing_touch_the_neighbours_in_all_lists() {
        let mut lists = PcbLists::new(2);
        let mut touched = Touched::default();
        for block in 0..4 {
            lists.insert(block, block % 2, &mut touched);
        }
        let (chain, list) = (|other| vec![other], |other| vec![other, other]);
        assert_eq!(
            touched.0,
            [list(0), chain(0), list(1), chain(1), list(2)].concat()
        );
        touched.0.clear();
        lists.remove(2, &mut touched);
        assert_eq!(touched.0, [chain(0), list(1), list(3)].concat());
        lists.check();
    }

    #[test]
    fn a_segment_restarts_the_keepalive_timer() {
        let mut lists = PcbLists::new(4);
        for block in 0..4 {
            lists.insert(block, block, &mut NoMeter);
            lists.received(block, false, false, &mut NoMeter);
        }
        let mut touched = Touched::default();
        lists.received(1, false, false, &mut touched);
        assert_eq!(touched.0, [0, 2, 3], "both neighbours and the latest");
    }

    #[test]
    fn the_retransmission_timer_runs_while_data_is_outstanding() {
        let mut lists = PcbLists::new(1);
        let mut touched = Touched::default();
        lists.insert(0, 0, &mut touched);
        lists.sent(0, &mut touched);
        assert!(lists.retransmit.contains(0));
        lists.received(0, true, true, &mut touched);
        assert!(lists.retransmit.contains(0));
        lists.received(0, true, false, &mut touched);
        assert!(!lists.retransmit.contains(0));
    }
}

//! The SYN cache: a small entry that the kernel keeps for a connection during its handshake, instead of a connection block.
//!
//! The cache follows FreeBSD 4.5 and later (`tcp_syncache.c`), with the sizes of `tcp_var.h` on i386: a separate hash table, and a queue of
//! entries whose SYN|ACK may have to be retransmitted. The third packet of the handshake creates the block, after a search for the
//! connection among the blocks that finds nothing.

use crate::lists::{Chains, List};
use crate::memory::Slots;
use crate::meter::{Access, Layer, Meter, Pool};
use baton_wire::Flow;

/// `TCP_SYNCACHE_HASHSIZE`.
const BUCKETS: u32 = 512;
/// Size of `struct syncache`; the zone allocator rounds these 136 bytes up to 160.
const ENTRY_BYTES: u32 = 136;
/// Ports and addresses in `sc_inc`, which a search compares.
const ENDPOINTS: (u32, u32) = (20, 36);
/// `sc_hash`: links in the chain.
const CHAIN_LINKS: (u32, u32) = (120, 8);
/// `sc_timerq`: links in the queue.
const QUEUE_LINKS: (u32, u32) = (128, 8);
/// Size of `struct syncache_head`: ends of the chain and its length.
const BUCKET_BYTES: u32 = 12;

/// Entries of the SYN cache.
#[derive(Debug)]
pub(crate) struct Syncache {
    slots: Slots,
    chains: Chains,
    /// Entries whose SYN|ACK was sent once, in order.
    queue: List,
}

impl Syncache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self {
            slots: Slots::new(u32::MAX),
            chains: Chains::new(BUCKETS),
            queue: List::default(),
        }
    }

    /// Adds an entry for a received SYN.
    pub fn add<M: Meter>(&mut self, flow: &Flow, m: &mut M) -> u32 {
        let bucket = self.chains.bucket(flow);
        self.search(bucket, None, m);
        let entry = self.slots.allocate_reserved();
        touch(m, entry, (0, ENTRY_BYTES));
        (self.chains).push(entry, bucket, |last| touch(m, last, CHAIN_LINKS));
        self.queue.push(entry, |last| touch(m, last, QUEUE_LINKS));
        entry
    }

    /// Charges the construction of an entry's SYN|ACK.
    pub fn respond<M: Meter>(entry: u32, m: &mut M) {
        touch(m, entry, (0, ENTRY_BYTES));
    }

    /// Removes an entry when the third packet of the handshake turns it into a connection block.
    pub fn expand<M: Meter>(&mut self, flow: &Flow, entry: u32, m: &mut M) {
        self.search(self.chains.bucket(flow), Some(entry), m);
        touch(m, entry, (0, ENTRY_BYTES));
        self.remove(entry, m);
    }

    /// Frees an entry.
    pub fn remove<M: Meter>(&mut self, entry: u32, m: &mut M) {
        let link = |other| touch(m, other, CHAIN_LINKS);
        if let Some(bucket) = self.chains.remove(entry, link) {
            touch_bucket(m, bucket);
            let link = |other| touch(m, other, QUEUE_LINKS);
            self.queue.remove(entry, link);
            self.slots.release(entry);
        }
    }

    /// Compares the entries of a chain, oldest first, up to the entry that is searched for.
    fn search<M: Meter>(&self, bucket: u32, entry: Option<u32>, m: &mut M) {
        touch_bucket(m, bucket);
        let passed = self.chains.chain(bucket).iter();
        for &other in passed.take_while(|&&other| Some(other) != entry) {
            touch(m, other, ENDPOINTS);
        }
    }

    /// Returns the number of entries in use.
    pub fn in_use(&self) -> u32 {
        self.slots.in_use()
    }

    /// Asserts that slots and chains are consistent.
    pub fn check(&self) {
        self.slots.check();
        self.chains.check();
    }
}

fn touch<M: Meter>(m: &mut M, entry: u32, (offset, len): (u32, u32)) {
    let (pool, access) = (Pool::Syncache, Access::Write);
    m.touch(Layer::Tcp, pool, entry, offset, len, access);
}

fn touch_bucket<M: Meter>(m: &mut M, bucket: u32) {
    let (pool, access) = (Pool::SyncacheBucket, Access::Write);
    m.touch(Layer::Tcp, pool, bucket, 0, BUCKET_BYTES, access);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{NoMeter, Op, Owner};
    use baton_testkit::endpoint;

    /// Records which part of which entry is touched.
    #[derive(Default)]
    struct Touched(Vec<(u32, u32)>);

    impl Meter for Touched {
        fn owner(&mut self, _owner: Owner) {}
        fn run(&mut self, _op: Op, _count: u32) {}
        fn touch(&mut self, _: Layer, pool: Pool, slot: u32, offset: u32, _: u32, _: Access) {
            if pool == Pool::Syncache {
                self.0.push((slot, offset));
            }
        }
        fn dma(&mut self, _: Pool, _: u32, _: u32, _: u32, _: Access) {}
    }

    fn flow(port: u16) -> Flow {
        Flow {
            local: endpoint(1, 80),
            remote: endpoint(2, port),
        }
    }

    #[test]
    fn entries_are_linked_behind_the_last_and_taken_out_from_between_neighbours() {
        let mut cache = Syncache::new();
        let mut m = Touched::default();
        // Every 512th port is in the same chain.
        for port in [1000, 1001, 1512] {
            cache.add(&flow(port), &mut m);
        }
        let (whole, [compared, chain, queue]) =
            (0, [ENDPOINTS, CHAIN_LINKS, QUEUE_LINKS].map(|part| part.0));
        let first = [(0, whole)];
        let second = [(1, whole), (0, queue)];
        let third = [(0, compared), (2, whole), (0, chain), (1, queue)];
        assert_eq!(m.0, [&first[..], &second, &third].concat());
        m.0.clear();
        cache.expand(&flow(1512), 2, &mut m);
        assert_eq!(m.0, [(0, compared), (2, whole), (0, chain), (1, queue)]);
        m.0.clear();
        cache.remove(0, &mut m);
        assert_eq!(m.0, [(1, queue)]);
        cache.check();
        assert_eq!(cache.in_use(), 1);
        assert_eq!(
            cache.add(&flow(1000), &mut NoMeter),
            0,
            "what was freed last"
        );
    }
}

//! A meter that asserts that what is touched lies within its structure.

use baton_host::{Access, Layer, Meter, Op, Owner, POOLS, Pool};

/// Checks every touch.
pub struct BoundsMeter;

fn check(pool: Pool, offset: u32, len: u32) {
    let (_, size) = POOLS[pool as usize];
    assert!(
        len > 0 && offset + len <= size,
        "{pool:?}: {len} bytes at {offset} of {size}"
    );
}

impl Meter for BoundsMeter {
    fn owner(&mut self, _owner: Owner) {}

    fn run(&mut self, op: Op, count: u32) {
        assert!(count > 0, "{op:?} was performed");
    }

    fn touch(&mut self, _: Layer, pool: Pool, _slot: u32, offset: u32, len: u32, _: Access) {
        check(pool, offset, len);
    }

    fn dma(&mut self, pool: Pool, _slot: u32, offset: u32, len: u32, _: Access) {
        check(pool, offset, len);
    }
}

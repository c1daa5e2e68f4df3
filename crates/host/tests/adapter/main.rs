//! Tests of the host's half of the protocol between host and adapter: descriptor by descriptor, with the test in the role of the adapter,
//! and together with the real adapter.

mod accepting;
mod allocations;
mod caching;
mod closing;
mod control;
mod fast_open;
mod losing;
mod receiving;
mod sending;
mod serving;
mod trust;

use baton_testkit::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

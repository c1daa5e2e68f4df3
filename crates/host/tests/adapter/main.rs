//! The host's half of an adapter: tested descriptor by descriptor against an adapter that the test plays, and together with the real
//! adapter.

mod accepting;
mod allocations;
mod caching;
mod closing;
mod control;
mod fast_open;
mod joint;
mod losing;
mod receiving;
mod script;
mod sending;
mod serving;
mod trust;

use baton_testkit::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

//! Dialogues between applications and the adapter, descriptor by descriptor, with a peer on the network.

mod accepting;
mod allocations;
mod caching;
mod closing;
mod connecting;
mod control;
mod custody;
mod exporting;
mod fast_open;
mod on_board;
mod packets;
mod receiving;
mod sending;
mod serving;
mod sessions;
mod times;
mod world;

use baton_testkit::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

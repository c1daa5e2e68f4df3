//! Tests of the host's half of the protocol between host and adapter: descriptor by descriptor, with the test in the role of the adapter,
//! and together with the real adapter.

mod allocations;
mod control;
mod files;
mod losing;
mod play;
mod sending;
mod serving;
mod trust;

use baton_testkit::Counting;

mod dialogues {
    baton_testkit::dialogues!(
        crate::play::Player, "adapter/dialogues":
        accepting, caching, closing, control, fast_open, losing, receiving, sending,
    );
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

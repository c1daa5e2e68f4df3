//! The engine against itself: delivery across any network and any moves.

mod common;
mod custom_controller;
mod delivery;
mod fast_open;
mod long_transfer;
mod memory;
mod moving;

#[global_allocator]
static ALLOCATOR: baton_testkit::Counting = baton_testkit::Counting;

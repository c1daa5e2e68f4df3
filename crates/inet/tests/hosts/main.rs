//! Hosts, their frames, and what they say to each other.

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod formats;
mod two_hosts;

//! Tests of hosts: the formats of their frames, and their conversations.

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod captures;
mod formats;
mod two_hosts;

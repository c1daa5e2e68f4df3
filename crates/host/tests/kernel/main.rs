//! The kernel: its sockets, handoffs, and caches, alone and in random worlds.

#[path = "../common/patient.rs"]
mod patient;
#[path = "../common/tcp.rs"]
mod tcp;

mod bounds;
mod cached;
mod cached_content;
mod caching;
mod handoff;
mod sockets;
mod world;

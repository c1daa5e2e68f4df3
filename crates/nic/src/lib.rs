//! NIC firmware: lookup, queues, scheduler, load control and the handoff commands.
//!
//! [`Firmware`] is sans-I/O: frames, descriptors and time go in; one piece of work at a time is done; frames and
//! descriptors come out. A [`Meter`] hears of every task, so that a simulated machine can charge it.
//!
//! [`offload::Adapter`] is the other kind of NIC: all of TCP is on it, and the host has sockets there.

mod cache;
mod config;
mod connections;
mod firmware;
mod frame;
mod load_control;
mod memory;
mod meter;
pub mod offload;
mod queues;
mod relief;
mod scheduler;
mod stats;

pub use cache::region::{ByteRegion, Region, Render, Storable, SymbolicRegion};
pub use config::{CacheConfig, Config, ConfigError, LoadControl, Relief, Scheduler, Transmit};
pub use firmware::{Firmware, HostRead, Outgoing, Upcall, Work};
pub use frame::write_frame;
pub use load_control::{Governor, LoadState, Step, Watermarks};
pub use meter::{LINE_BYTES, Meter, NoMeter, TASKS, Task};
pub use queues::{QueueLengths, Stamp};
pub use scheduler::{Heads, Schedule, Source};
pub use stats::{
    CacheRefusal, CacheRefusals, CacheStats, Drop, Drops, Ignored, IgnoredCommands, Refusals, Stats,
};

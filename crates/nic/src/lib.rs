//! NIC firmware: packet lookup, queues, scheduler, load control, data cache, and the sockets that hosts open on the adapter.
//!
//! [`adapter::Adapter`] is sans-I/O: the caller passes in frames, requests and the time, and takes out frames and responses.
//!
//! | to find | look in |
//! |---|---|
//! | requests of hosts, and sockets on the adapter | [`adapter`]; a file for each request, such as `src/adapter/import.rs` |
//! | the order of an adapter's work: one piece at a time, as the firmware of the papers works, or all at once | [`Process`] |
//! | bounded queues of waiting work | [`QueueLengths`], `src/queues.rs` |
//! | which piece of work is next | [`Schedule`], `src/scheduler.rs` |
//! | how many connections the NIC takes | [`Governor`], [`LoadState`], `src/load_control.rs` |
//! | the data cache | [`CacheConfig`], `src/adapter/caching.rs`, `src/blocks.rs` |
//! | parameters; packets that were dropped, by reason | [`Config`], [`Drops`] |
//! | the tasks that a simulated machine charges for | [`Meter`], [`Task`] |

mod activity;
pub mod adapter;
mod blocks;
mod config;
mod drops;
mod load_control;
mod memory;
mod meter;
mod process;
mod queues;
mod scheduler;

pub use config::{
    CacheConfig, Config, ConfigError, LoadControl, LoadMeasure, Relief, Scheduler, Transmit,
};
pub use drops::{Drop, Drops};
pub use load_control::{Governor, Load, LoadState, Watermarks};
pub use meter::{LINE_BYTES, Meter, NoMeter, TASKS, Task};
pub use process::{Links, Lower, Owner, Process, Work};
pub use queues::{QueueLengths, Stamp};
pub use scheduler::{Heads, Schedule, Source};

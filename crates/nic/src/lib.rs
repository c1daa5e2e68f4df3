//! NIC firmware: packet lookup, queues, scheduler, load control, data cache, and the sockets that hosts open on the adapter.
//!
//! [`adapter::Adapter`] is sans-I/O: the caller passes in frames, requests and the time, and takes out frames and responses.
//! [`Process`] makes the adapter do one piece of work at a time, as the firmware of the papers does. A [`Meter`] is called for
//! every task, so that a simulated machine can charge for it.

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

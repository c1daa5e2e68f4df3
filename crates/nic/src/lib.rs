//! NIC firmware: lookup, queues, scheduler, load control, data cache, and the sockets that hosts have here.
//!
//! [`adapter::Adapter`] is sans-I/O: frames, requests and time go in; frames and responses come out. [`adapter::Dispatch`] lets it do one piece
//! of work at a time, as the firmware of the papers does. A [`Meter`] hears of every task, so that a simulated machine can charge it.

mod activity;
pub mod adapter;
mod blocks;
mod config;
mod drops;
mod load_control;
mod memory;
mod meter;
mod queues;
mod scheduler;

pub use config::{
    CacheConfig, Config, ConfigError, LoadControl, LoadMeasure, Relief, Scheduler, Transmit,
};
pub use drops::{Drop, Drops};
pub use load_control::{Governor, Load, LoadState, Watermarks};
pub use meter::{LINE_BYTES, Meter, NoMeter, TASKS, Task};
pub use queues::{QueueLengths, Stamp};
pub use scheduler::{Heads, Schedule, Source};

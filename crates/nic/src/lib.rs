//! NIC firmware: lookup, queues, scheduler, load control and the handoff commands.
//!
//! [`Firmware`] is sans-I/O: frames, descriptors and time go in; one piece of work at a time is done; frames and
//! descriptors come out. A [`Meter`] hears of every task, so that a simulated machine can charge it.

mod config;
mod connections;
mod descriptor;
mod firmware;
mod load_control;
mod memory;
mod meter;
mod queues;
mod relief;
mod scheduler;
mod stats;

pub use config::{Config, LoadControl, Relief, Scheduler};
pub use descriptor::{Command, Control, Event, Handle, Refusal, ToHost, ToNic};
pub use firmware::{Firmware, Outgoing, Upcall, Work};
pub use load_control::LoadState;
pub use meter::{Meter, NoMeter, TASKS, Task};
pub use queues::QueueLengths;
pub use stats::{Drop, Drops, Ignored, IgnoredCommands, Refusals, Stats};

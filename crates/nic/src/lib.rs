//! NIC firmware: lookup, queues, scheduler, load control and the handoff commands.
//!
//! [`Firmware`] is sans-I/O: frames, descriptors and time go in; one piece of work at a time is done; frames and
//! descriptors come out. A [`Meter`] hears of every task, so that a simulated machine can charge it.

mod config;
mod descriptor;
mod meter;

pub use config::{Config, LoadControl, Relief, Scheduler};
pub use descriptor::{Command, Control, Event, Handle, Refusal, ToHost, ToNic};
pub use meter::{Meter, NoMeter, TASKS, Task};

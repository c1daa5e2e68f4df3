//! Virtual time, processors, caches, DRAM, wires, and the machine that joins them.
//!
//! [`run`] takes an [`config::Experiment`] and gives [`results::Results`]. Equal experiments give equal bits. [`offload`] is another machine,
//! whose adapter has all of TCP.

pub mod config;
mod event_queue;
pub mod hardware;
mod machine;
pub mod offload;
pub mod results;
mod run;

pub use event_queue::EventQueue;
pub use machine::{Capture, Link, Machine, NoObserver, Observer, RunError, Violation};
pub use run::{Facts, Load, load_workload, run};

//! Virtual time, processors, caches, DRAM, wires, and the machine that combines them.
//!
//! [`run`] simulates an [`config::Experiment`] and returns [`results::Results`]. Equal experiments give bit-identical results.

pub mod config;
mod event_queue;
pub mod hardware;
mod machine;
pub mod results;
mod run;

pub use event_queue::EventQueue;
pub use machine::{
    Capture, Link, Machine, MachineBuilder, NoObserver, Observer, RunError, Timeline, Violation,
};
pub use run::{
    Fact, Facts, Load, ReplayedLog, WARNINGS, load_workload, replayed_log, run, run_on, run_with,
};

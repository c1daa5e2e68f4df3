//! Virtual time, processors, caches, DRAM, wires, and the machine that combines them.
//!
//! [`run`] simulates an [`config::Experiment`] and returns [`results::Results`]. Equal experiments give bit-identical results. The
//! first four rows below follow a packet from a client to the application.
//!
//! | to find | look in |
//! |---|---|
//! | a packet at the clients and on the wire | `src/machine/clients/`, `src/machine/wires.rs` |
//! | a packet on the NIC | `src/machine/server/adapter_process.rs`; the firmware is [`baton_nic`] |
//! | what crosses the bus, and when | `src/machine/server/link.rs`, `src/machine/server/carrier.rs` |
//! | a packet on the host: stack, sockets, application | `host_stack.rs`, `metered.rs`, `host_process.rs` in `src/machine/server/`; `src/machine/system_calls.rs` |
//! | the order in which NIC and host work | [`baton_nic::Process`], [`baton_host::process`] |
//! | models of processor, cache, DRAM, disk, wire; of buses | [`hardware`]; [`baton_bus::interconnect`] |
//! | keys of an experiment | [`config`] |
//! | a policy; one of your own | [`baton_host::Selection`], [`baton_nic::Schedule`], [`baton_cache::Replacement`]; [`MachineBuilder`] |
//! | what work costs; what is measured | `src/machine/meter.rs`; [`results`], `src/machine/measure.rs` |

pub mod config;
mod event_queue;
pub mod hardware;
mod machine;
pub mod results;
mod run;

pub use event_queue::EventQueue;
pub use machine::{
    Capture, HostMeter, HostProcessor, KernelSockets, Link, Machine, MachineBuilder, NicMeter,
    NoObserver, Observer, RunError, SystemCalls, Timeline, Violation,
};
pub use run::{
    Fact, Facts, Load, ReplayedLog, WARNINGS, load_workload, replayed_log, run, run_on, run_with,
};

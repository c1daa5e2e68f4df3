//! The adapter process: the engine serves applications that run in other processes (batching, "Event-driven TCP").
//!
//! [`run_adapter`] is the loop of its thread, or of each thread of an adapter with several engines ([`Siblings`]). [`AdapterService`] runs on
//! the engine: applications attach through its [`Listeners`], and each turn of the loop moves data and requests between each application and the
//! host's stack, up to a limit per application. An application that does not read its answers stalls only itself, one that breaks the rules is
//! cut off, and the connections of one that has exited are reset or closed in order.
//!
//! The adapter works in one of the two ways of a [`Process`](baton_nic::Process), as the simulated adapter does. All at once: each frame
//! goes to TCP or to its host as it arrives, consecutive segments of a connection are merged, and requests are carried out in bulk, which
//! is faster. One by one: frames and requests wait in the firmware's queues, a scheduler picks the next one, and an item that finds its
//! queue full is dropped and counted by reason. That is the order of the handoff papers.
//!
//! An idle application costs nothing: before the loop sleeps, it asks the application to ring a doorbell, and then ignores the application
//! until it rings or the adapter has something for it.

mod application;
mod below;
mod beside;
mod config;
mod counters;
mod cutoff;
mod ledger;
mod listeners;
mod notice;
mod rows;
mod run;
mod service;
mod siblings;
mod timeline;
mod wakeups;

#[cfg(test)]
mod tests;

pub use application::About;
pub use below::{Below, work};
pub use beside::{Beside, BesideKernel, BesideStats};
pub use config::AdapterServiceConfig;
pub use cutoff::CutOffs;
pub use listeners::Listeners;
pub use notice::Notice;
pub use rows::{ApplicationRow, BusRow, RingRow};
pub use run::run_adapter;
pub use service::{AdapterService, ApplicationStats};
pub use siblings::{MOST_ENGINES, SiblingStats, Siblings};
pub use timeline::AdapterTimeline;

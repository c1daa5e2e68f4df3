//! The adapter process: the engine serves applications of other processes (batching, "Event-driven TCP").
//!
//! [`run_adapter`] is the loop of one thread. [`AdapterService`] is what runs on the engine: applications come in by its [`Listeners`], and
//! each turn moves what can be moved between them and the host's stack, for each a bounded amount. One that does not take
//! its answers stops only itself; one that breaks the rules is cut off; the connections of one that is gone are reset or come
//! to their end in order.
//!
//! There are two ways to work. At once: every frame goes to TCP or to its host as it comes, segments of a connection that follow each other
//! as one, and requests are carried out in bulk; that is faster. One by one ([`OneByOne`]): frames and requests wait in the firmware's queues,
//! a scheduler says which is next, and what finds a queue full is dropped by name; that is the order of the handoff papers, and of the
//! simulated adapter.
//!
//! An application that has nothing to say costs nothing: before the loop sleeps it is told to ring, and it is not looked at until it
//! does or there is something for it.

mod application;
mod beside;
mod config;
mod counters;
mod cutoff;
mod ledger;
mod listeners;
mod notice;
mod one_by_one;
mod passing;
mod rows;
mod run;
mod service;
mod timeline;
mod wakeups;

#[cfg(test)]
mod tests;

pub use application::About;
pub use beside::{Beside, BesideKernel, BesideStats};
pub use config::AdapterServiceConfig;
pub use cutoff::CutOffs;
pub use listeners::Listeners;
pub use notice::Notice;
pub use one_by_one::{Links, OneByOne, Parts};
pub use rows::{ApplicationRow, BusRow, RingRow};
pub use run::run_adapter;
pub use service::{AdapterService, ApplicationStats};
pub use timeline::AdapterTimeline;

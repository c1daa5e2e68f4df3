//! Runs the engine on real interfaces.
//!
//! A [`port`] receives and sends frames; [`Link`] creates the interfaces and namespaces that a command needs and removes them afterwards;
//! [`Engine`] is the loop that drives a host on a port; [`Forwarding`] does the same for a router on several ports. [`WebService`],
//! [`Fetch`] and the [`adapter`] are applications. [`ControlSocket`] answers status requests with a [`Snapshot`]. Links between host and
//! adapter are in [`bus`]. [`xdp`] looks up flows in the kernel, and [`repair`] takes connections out of the kernel and puts them back.
//!
//! Everything runs in one thread. In steady state no segment causes an allocation, and payload is copied once in each direction.

pub mod adapter;
mod admission;
mod affinity;
pub mod broker;
mod capture;
mod clock;
mod control;
mod ending;
mod engine;
mod error;
mod fetch;
mod forwarding;
mod handoff;
pub mod http;
mod kernel;
mod link;
mod loopback;
mod memory;
mod namespace;
mod neighbourhood;
mod netlink;
mod places;
pub mod port;
mod privileges;
mod remote;
pub mod repair;
mod service;
mod snapshot;
pub mod sock_diag;
mod throttle;
mod web;
mod world;
pub mod xdp;

#[cfg(test)]
mod tests;

pub use adapter::{ApplicationRow, BusRow, RingRow};
pub use admission::{Admission, AdmissionError, give_socket};
pub use affinity::{allowed_cores, pin_to_core};
pub use baton_iolib as bus;
pub use capture::{CaptureBlock, CaptureSpec, Captures, Merge};
pub use clock::Clock;
pub use control::{
    Asker, ControlSocket, ControlStats, LONGEST_ANSWER, Question, Refused, ask, ask_for,
};
pub use ending::{Stop, Waiting};
pub use engine::{Application, Engine, EngineStats};
pub use error::LiveError;
pub use fetch::{Fetch, FetchError, Url, UrlError};
pub use forwarding::Forwarding;
pub use handoff::{HandoffConfig, HandoffSockets};
pub use kernel::{KernelHandoff, KernelSockets};
pub use link::{Attachment, Link, LinkSpec, mac_for};
pub use memory::usable_memory;
pub use namespace::{enter, remove_all_namespaces, within};
pub use places::Places;
pub use privileges::{
    Confinement, ServiceUser, ServiceUserError, confine, keep_no_privileges,
    keep_privileges_of_broker, user_name, user_number, without_capabilities,
};
pub use remote::{AdapterSockets, CannotListen, LinkNews};
pub use service::{WebService, serve};
pub use snapshot::{ConnectionRow, ListenerRow, NeighbourRow, Snapshot, SnapshotSource};
pub use web::ServiceConfig;
pub use world::{SocketWorld, WorldService};

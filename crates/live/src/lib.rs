//! Runs the engine on real interfaces.
//!
//! A frame comes from a [`port`]; [`Engine`] passes it to IP and TCP ([`baton_inet::Host`]) and then runs the application, whose segments
//! leave the same way. The application is a web server, a client, or an [`adapter`] for the sockets of other processes ([`bus`] has the links
//! to them). Everything runs in one thread, or in one thread for each engine of an adapter. In steady state no segment causes an allocation, and payload is copied once in each direction.
//!
//! | to find | look in |
//! |---|---|
//! | frames from and to an interface; faults | [`port`] |
//! | the loop that drives a host, or a router on several ports | [`Engine`], [`Forwarding`] |
//! | the adapter's process and its applications | [`adapter`] |
//! | connections that move between kernel and adapter | [`broker`], [`repair`] (out of the kernel and back), [`xdp`] (their packets) |
//! | HTTP, the web server, the client | [`http`], [`WebService`], [`Fetch`] |
//! | the web server on other sockets | [`WorldService`] on [`AdapterSockets`], [`HandoffSockets`] or [`KernelSockets`] |
//! | answers about a running engine, captures | [`ControlSocket`], [`Snapshot`], [`Captures`] |
//! | what a command creates and removes; privileges that it drops | [`Link`], `src/namespace.rs`, `src/privileges.rs` |

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

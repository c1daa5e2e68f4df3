//! Workloads of a server: replayed access logs, synthetic logs fitted to real ones, SPECweb99-like load and microloads, all behind one
//! trait, [`Workload`].
//!
//! - [`log`] reads access logs of several formats; [`session`] groups their requests into connections.
//! - [`capture`] measures how long the connections of a packet capture live; [`packets`] are captured or generated packets for a router.
//! - [`replay`] turns a log into a [`Workload`]; [`specweb`] and [`micro`] generate loads of their own.
//! - [`load`] determines when requests are due, in open and closed loops.
//! - [`analyse`] computes statistics of a log; [`generate`] creates synthetic logs, and [`fit`] finds parameters that make them resemble a
//!   real one.
//! - [`Workload`] returns connection scripts; the simulated or live client only follows them.
//!
//! Nothing in this crate has a clock, sockets or packets: a client applies the rules that a script states.

pub mod analyse;
pub mod capture;
pub mod fit;
pub mod generate;
pub mod load;
pub mod log;
pub mod micro;
pub mod on_demand;
pub mod packets;
pub mod remote_files;
pub mod replay;
pub mod session;
mod source;
pub mod specweb;

pub use analyse::Analysis;
pub use fit::Fit;
pub use generate::{GeneratorSpec, Preset};
pub use load::LoadSpec;
pub use log::{Log, LogError};
pub use micro::{Fixed, FixedSpec};
pub use on_demand::{OnDemand, OnDemandError, OnDemandSpec, TitleClass};
pub use remote_files::{RemoteFiles, RemoteFilesSpec};
pub use replay::{Order, Replay};
pub use session::{SessionRule, Sessions};
pub use source::{Content, Demand, FileSet, RequestSpec, Throttle, Workload};
pub use specweb::{SpecWeb, SpecWebSpec};

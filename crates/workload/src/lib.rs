//! What clients ask of a server: access logs replayed, synthetic logs fitted to real ones, SPECweb99-like load
//! and microloads, all behind one trait, [`Workload`].
//!
//! - [`log`] reads access logs of several formats; [`session`] groups their requests into connections.
//! - [`capture`] tells how long the connections of a packet capture live; [`packets`] are those that a router gets, captured or generated.
//! - [`replay`] makes a [`Workload`] of a log; [`specweb`] and [`micro`] make loads of their own.
//! - [`load`] says when requests are due: open and closed loops.
//! - [`analyse`] tells what is in a log; [`generate`] makes synthetic logs, [`fit`] finds the parameters that make one
//!   like a real one.
//! - [`Workload`] hands out connection scripts; the simulated or live client only follows them.
//!
//! Nothing here has a clock, sockets or packets: a client applies the rules a script states.

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

//! Workloads of a server: replayed access logs, synthetic logs fitted to real ones, SPECweb99-like load and microloads, all behind one
//! trait, [`Workload`], which returns connection scripts.
//!
//! Nothing in this crate has a clock, sockets or packets: a client, simulated or live, applies the rules that a script states.
//!
//! | to find | look in |
//! |---|---|
//! | access logs; a format of them | [`log`]; [`log::Format`], `src/log/parse/` |
//! | which requests of a log share a connection; a log as a workload | [`session`]; [`replay`] |
//! | loads without a log | [`specweb`], [`micro`], [`on_demand`], [`remote_files`] |
//! | when requests are due, in open and closed loops | [`load`] |
//! | statistics of a log | [`analyse`] |
//! | synthetic logs, and parameters that make them resemble a real one | [`generate`], [`fit`] |
//! | how long the connections of a packet capture live | [`capture`] |
//! | packets for a router, captured or generated | [`packets`] |

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

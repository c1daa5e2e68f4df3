//! Adapters with applications and peers, for the tests of several crates and for fuzz targets. Production code does not depend on this
//! crate.
//!
//! - [`Cluster`] has a host whose connections move between it and its adapters, or are all on one, with peers that check every byte.
//! - [`world`] has one adapter in memory, with applications whose descriptors the test writes, and a peer on the network.
//! - [`script`] has a host whose adapter the test plays: it sees the requests and chooses the answers.
//! - [`network`] has two adapters that are connected to each other, to which applications attach as to processes.

mod cluster;
pub mod network;
pub mod script;
pub mod world;

pub use cluster::{Cluster, Place, Summary};

//! Adapters with applications and peers, for the tests of several crates and for fuzz targets. Production code does not depend on this
//! crate.
//!
//! - [`world`] has one adapter in memory, with applications whose descriptors the test writes, and a peer on the network.
//! - [`network`] has two adapters that are connected to each other, to which applications attach as to processes.

pub mod network;
pub mod world;

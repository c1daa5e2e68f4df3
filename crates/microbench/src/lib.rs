//! Microbenchmarks of network interfaces.
//!
//! The ten tests of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Pai, Rixner, Kim; Rice
//! University, TR EE0401) replay frames at the driver, below sockets, and count what is sent or received. A test runs on a [`Port`], which
//! is a simulated NIC ([`simulated`]) or a real interface. A [`search`] finds the highest rate.

pub mod applications;
pub mod frame;
pub mod measure;
mod port;
pub mod profile;
pub mod report;
pub mod rfc2544;
pub mod search;
pub mod simulated;
mod test;
pub mod under_load;

pub use port::{
    Latency, Load, Losses, Machine, Place, Port, Request, Resource, Stream, Trial, Use,
};
pub use test::{Test, Unit};

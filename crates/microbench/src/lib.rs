//! What a network interface is good at.
//!
//! The ten tests of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Pai, Rixner, Kim; Rice
//! University, TR EE0401): frames are replayed at the driver, below sockets, and what is sent or received is counted. A test is made on a
//! [`Port`]: a simulated NIC ([`simulated`]) or an interface. A [`search`] finds the highest rate.

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

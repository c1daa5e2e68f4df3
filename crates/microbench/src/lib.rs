//! What a network interface is good at.
//!
//! The ten tests of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Pai, Rixner, Kim; Rice
//! University, TR EE0401): frames are replayed at the driver, below sockets, and what is sent or received is counted. A test is made on a
//! [`Port`]: a simulated NIC ([`simulated`]) or an interface. A [search](search) finds the highest rate.

pub mod frame;
mod port;
pub mod search;
mod test;

pub use port::{
    Latency, Load, Losses, Machine, Place, Port, Request, Resource, Stream, Trial, Use,
};
pub use test::{Test, Unit};

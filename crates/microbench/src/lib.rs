//! Microbenchmarks of network interfaces.
//!
//! The ten tests of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Pai, Rixner, Kim; Rice
//! University, TR EE0401) replay frames at the driver, below sockets, and count what is sent or received.
//!
//! | to find | look in |
//! |---|---|
//! | the tests and their frames | [`Test`], [`frame`] |
//! | what a test runs on: a simulated NIC or a real interface | [`Port`] |
//! | simulated NICs, with their drivers, hosts, buses and switches | [`simulated`] |
//! | the NICs and hosts of the report | [`Profiles`]; the files are in `profiles/nics/` and `profiles/hosts/` at the root of the repository |
//! | the search for the highest rate | [`measure`], [`search`] |
//! | the benchmarks of RFC 2544, latency under load | [`rfc2544`], [`under_load`] |
//! | a web server and a router on simulated NICs | [`applications`] |
//! | figures, tables and statements of the report | [`report`] |

pub mod applications;
pub mod frame;
pub mod measure;
mod port;
mod profile;
pub mod report;
pub mod rfc2544;
pub mod search;
pub mod simulated;
mod test;
pub mod under_load;

pub use port::{
    Latency, Load, Losses, Machine, Place, Port, Request, Resource, Stream, Trial, Use,
};
pub use profile::Profiles;
pub use test::{Test, Unit};

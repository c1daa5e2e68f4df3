//! Applications written against the socket layer ([`baton_host::Sockets`]), so that they run simulated and live.

mod costs;
pub mod symbolic;
pub mod web;

pub use costs::{Costs, MeteredSockets};

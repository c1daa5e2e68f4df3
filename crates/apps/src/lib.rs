//! Applications written against the socket layer ([`baton_host::Sockets`]), so that they run simulated and live.

pub mod symbolic;
pub mod web;

//! How an application asks the broker of an adapter beside the kernel: for connections of the kernel, and to have them back.

mod client;
pub mod messages;

pub use client::{BrokerClient, BrokerError};

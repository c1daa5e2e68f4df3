//! How an application and the broker of an adapter beside the kernel ask each other: for connections of the kernel and to have them back; and
//! where the application's connections are.

mod client;
pub mod messages;
mod subscription;

pub use client::{ApplicationPlaces, BrokerClient, BrokerError};
pub(crate) use subscription::Subscription;

//! The protocol between applications and the broker: taking connections out of the kernel and putting them back, and reporting where the
//! application's connections are.

mod client;
mod history;
pub mod messages;
mod subscription;

pub use client::{ApplicationPlaces, BrokerClient, BrokerError};
pub use history::{ConnectionHistory, Destination, HistoryAnswer, HistoryQuery, MoveRow};
pub(crate) use subscription::Subscription;

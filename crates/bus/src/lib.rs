//! The interface between host and NIC.
//!
//! Descriptors wait in a [`Ring`] on their way to the other side. A [`Batcher`] decides when waiting descriptors are transferred.
//! [`descriptor`] defines the messages of both sides. [`Accounting`] counts every crossing of the bus (one DMA operation each) and the
//! bytes that cross, by category. An [`interconnect`] computes how long each transfer takes when several devices compete for the bus.

mod accounting;
mod batch;
mod chain;
pub mod descriptor;
mod descriptor_queue;
mod fifo;
pub mod interconnect;
pub mod link;
mod ring;
pub mod shared;

pub use accounting::{
    Accounting, ByCategory, BytesByCategory, Category, Direction, DirectionAccount,
    EntriesPerTransfer, TimeByCategory,
};
pub use batch::{Batcher, Batching, BatchingError, BatchingPolicy, BatchingRule, Urgency};
pub use chain::{Chain, Chains};
pub use descriptor::Descriptor;
pub use descriptor_queue::{DescriptorQueue, QueueStats};
pub use fifo::Fifo;
pub use link::{AdapterLink, HostLink};
pub use ring::Ring;

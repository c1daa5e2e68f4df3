//! The interface between host and NIC.
//!
//! Descriptors wait in a [`Ring`] on their way to the other side. Every crossing of the bus is one DMA operation.
//!
//! | to find | look in |
//! |---|---|
//! | the messages of both sides | [`descriptor`] |
//! | the link, as host and adapter see it; a link in memory | [`HostLink`], [`AdapterLink`], [`link`] |
//! | queues of descriptors | [`Ring`], [`DescriptorQueue`], [`Chains`], [`Fifo`] |
//! | when waiting descriptors are transferred; a policy for that | [`Batcher`], [`Batching`], [`BatchingRule`] |
//! | counts of crossings, and of bytes by category | [`Accounting`] |
//! | how long transfers take when devices compete: PCI, PCI-X, PCI Express | [`interconnect`] |
//! | rings and doorbells in memory that two processes share | [`shared`] |

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

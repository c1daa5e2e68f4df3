//! Where host and NIC meet.
//!
//! Descriptors wait in a [`Ring`] on their way to the other side. A [`Batcher`] says when those that wait are transferred.
//! [`Accounting`] counts every crossing of the bus (one DMA operation each) and the bytes that cross, by what they are for.
//! An [`interconnect`] says how long each transfer takes when several devices want the bus.

mod accounting;
mod batch;
pub mod interconnect;
mod ring;

pub use accounting::{
    Accounting, ByCategory, BytesByCategory, Category, Direction, DirectionAccount,
    EntriesPerTransfer, TimeByCategory,
};
pub use batch::{Batch, Batcher, Batching, BatchingError};
pub use ring::Ring;

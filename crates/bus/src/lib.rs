//! Where host and NIC meet.
//!
//! Descriptors wait in a [`Ring`] on their way to the other side. A [`Batcher`] says when those that wait are transferred.
//! [`Accounting`] counts every crossing of the bus (one DMA operation each) and the bytes that cross, by what they are for.

mod accounting;
mod batch;
mod ring;

pub use accounting::{
    Accounting, BytesByCategory, Category, Direction, DirectionAccount, EntriesPerTransfer,
};
pub use batch::{Batch, Batcher, Batching, BatchingError};
pub use ring::Ring;

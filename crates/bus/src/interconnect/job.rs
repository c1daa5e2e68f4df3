//! Transfers in progress.

use baton_wire::Time;

use super::Transfer;
use crate::BytesByCategory;

/// A transfer and its remaining bytes.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The transfer, whose bytes are the remaining ones.
    pub(super) transfer: Transfer,
    pub(super) arrival: Time,
    /// Sum of the remaining bytes.
    left_bytes: u64,
}

impl Job {
    #[inline]
    pub(super) fn new(now: Time, transfer: Transfer) -> Self {
        Self {
            left_bytes: transfer.bytes.total(),
            transfer,
            arrival: now,
        }
    }

    pub(super) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Moves `bytes` of the transfer, and returns them by category.
    pub(super) fn take(&mut self, bytes: u64) -> BytesByCategory {
        self.left_bytes -= bytes;
        if self.left_bytes == 0 {
            return std::mem::take(&mut self.transfer.bytes);
        }
        self.transfer.bytes.take(bytes)
    }
}

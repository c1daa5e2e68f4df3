//! Transfers under way.

use baton_wire::Time;

use super::{DeviceId, Operation, Transfer};
use crate::BytesByCategory;

/// A transfer and what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) device: DeviceId,
    pub(super) operation: Operation,
    pub(super) tag: u64,
    pub(super) reported: bool,
    pub(super) arrival: Time,
    left: BytesByCategory,
    left_bytes: u64,
}

impl Job {
    pub(super) fn new(now: Time, transfer: &Transfer) -> Self {
        Self {
            device: transfer.device,
            operation: transfer.operation,
            tag: transfer.tag,
            reported: transfer.reported,
            arrival: now,
            left: transfer.bytes,
            left_bytes: transfer.bytes.total(),
        }
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Transfer {
        Transfer {
            device: self.device,
            operation: self.operation,
            bytes: self.left,
            tag: self.tag,
            reported: self.reported,
        }
    }

    pub(super) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Moves `bytes` of it, and says what they were.
    pub(super) fn take(&mut self, bytes: u64) -> BytesByCategory {
        self.left_bytes -= bytes;
        if self.left_bytes == 0 {
            return self.left;
        }
        self.left.take(bytes)
    }
}

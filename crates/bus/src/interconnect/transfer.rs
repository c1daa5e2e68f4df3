//! Transfers that devices and the processor submit to an interconnect.

use baton_wire::Time;
use serde::{Deserialize, Serialize};

use crate::{BytesByCategory, Category};

/// A device on the interconnect, counted from 0: a NIC, the disk's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId(pub u8);

impl DeviceId {
    /// Returns the index in tables of devices.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Kind of transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// The device reads host memory.
    DmaRead,
    /// The device writes host memory.
    DmaWrite,
    /// The processor writes a register of the device: a doorbell.
    RegisterWrite,
    /// The processor reads a register of the device.
    RegisterRead,
    /// The device interrupts the processor. A message on PCI Express; a pin, which costs nothing, on PCI and PCI-X.
    Interrupt,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 5] = [
        Self::DmaRead,
        Self::DmaWrite,
        Self::RegisterWrite,
        Self::RegisterRead,
        Self::Interrupt,
    ];

    /// Returns whether the processor starts the operation; devices start all others.
    pub fn is_register_access(self) -> bool {
        matches!(self, Self::RegisterWrite | Self::RegisterRead)
    }
}

/// One transfer of any length: the interconnect splits it as its rules require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The device that makes the transfer, or whose register is accessed.
    pub device: DeviceId,
    /// Kind of transfer.
    pub operation: Operation,
    /// Bytes of the transfer by category. The interconnect itself adds overhead.
    pub bytes: BytesByCategory,
    /// Returned when the transfer completes.
    pub tag: u64,
    /// Whether completion is reported. If not, [`poll_done`](super::Interconnect::poll_done) omits the transfer.
    pub reported: bool,
}

/// Contiguous host memory with one kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Purpose of the data.
    pub category: Category,
    /// Length in bytes.
    pub bytes: u32,
}

impl Piece {
    /// Combines the reads of all `pieces` into one transfer whose completion is reported.
    pub(super) fn read_all(pieces: &[Self], device: DeviceId, tag: u64) -> Transfer {
        let mut bytes = BytesByCategory::default();
        for piece in pieces {
            bytes.add(piece.category, piece.bytes.into());
        }
        Transfer {
            device,
            operation: Operation::DmaRead,
            bytes,
            tag,
            reported: true,
        }
    }

    /// Returns the read of this piece.
    pub(super) fn read_by(self, device: DeviceId, tag: u64, reported: bool) -> Transfer {
        Transfer {
            device,
            operation: Operation::DmaRead,
            bytes: BytesByCategory::of(self.category, self.bytes.into()),
            tag,
            reported,
        }
    }
}

/// A completed transfer: the data of a read have all arrived, a write has reached its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The device of the transfer.
    pub device: DeviceId,
    /// The tag of the transfer.
    pub tag: u64,
    /// Completion time.
    pub at: Time,
}

//! What devices and the processor ask of an interconnect.

use baton_wire::Time;
use serde::{Deserialize, Serialize};

use crate::{BytesByCategory, Category};

/// A device on the interconnect, counted from 0: a NIC, the disk's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId(pub u8);

impl DeviceId {
    /// Its place in tables of devices.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a transfer does.
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

    /// Whether the processor starts it; a device starts all others.
    pub fn is_register_access(self) -> bool {
        matches!(self, Self::RegisterWrite | Self::RegisterRead)
    }
}

/// One transfer, of any length: the interconnect cuts it into what fits its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whose it is.
    pub device: DeviceId,
    /// What it does.
    pub operation: Operation,
    /// What it carries, by what that is for. Overhead is the interconnect's own to add.
    pub bytes: BytesByCategory,
    /// Given back when it is done.
    pub tag: u64,
    /// Whether somebody wants to know when it is done. If not, [`poll_done`](super::Interconnect::poll_done) leaves it out.
    pub reported: bool,
}

/// Contiguous host memory with one kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is for.
    pub category: Category,
    /// Its length, bytes.
    pub bytes: u32,
}

impl Piece {
    /// The reads of all `pieces`, as one whose end is reported.
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

    /// The read of this piece.
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

/// A transfer that is done: the data of a read is all there, a write is where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Whose it was.
    pub device: DeviceId,
    /// The transfer's.
    pub tag: u64,
    /// When it was done.
    pub at: Time,
}

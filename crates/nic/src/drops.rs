//! Received packets that were dropped, counted by reason.

use serde::{Deserialize, Serialize};

/// Why a received packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Drop {
    /// Too many packets wait for lookup.
    #[error("too many packets wait for lookup")]
    ArrivalQueue,
    /// A packet for the host found the receive queue full.
    #[error("the receive queue of the host is full")]
    HostReceiveQueue,
    /// A packet of a connection on the NIC found the receive queue full.
    #[error("the receive queue of the NIC is full")]
    NicReceiveQueue,
    /// On-board memory is full.
    #[error("on-board memory is full")]
    Memory,
}

impl Drop {
    /// Returns the name of the reason in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ArrivalQueue => "arrival_queue",
            Self::HostReceiveQueue => "host_receive_queue",
            Self::NicReceiveQueue => "nic_receive_queue",
            Self::Memory => "memory",
        }
    }
}

/// Dropped packets by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// [`Drop::ArrivalQueue`].
    pub arrival_queue: u64,
    /// [`Drop::HostReceiveQueue`].
    pub host_receive_queue: u64,
    /// [`Drop::NicReceiveQueue`].
    pub nic_receive_queue: u64,
    /// [`Drop::Memory`].
    pub memory: u64,
}

impl Drops {
    pub(crate) fn count(&mut self, reason: Drop) {
        *match reason {
            Drop::ArrivalQueue => &mut self.arrival_queue,
            Drop::HostReceiveQueue => &mut self.host_receive_queue,
            Drop::NicReceiveQueue => &mut self.nic_receive_queue,
            Drop::Memory => &mut self.memory,
        } += 1;
    }

    /// Returns the count of each reason with its name, as in the serialised form.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            (Drop::ArrivalQueue, self.arrival_queue),
            (Drop::HostReceiveQueue, self.host_receive_queue),
            (Drop::NicReceiveQueue, self.nic_receive_queue),
            (Drop::Memory, self.memory),
        ]
        .map(|(reason, count)| (reason.name(), count))
        .into_iter()
    }
}

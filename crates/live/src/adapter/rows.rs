//! What a snapshot contains about applications and their traffic with the adapter.

use baton_bus::{Accounting, DescriptorQueue, EntriesPerTransfer};
use serde::{Deserialize, Serialize};

/// An application of an adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationRow {
    /// Number of the application, as used in the rows of connections.
    pub number: u32,
    /// Process ID, if the application runs on this machine.
    pub pid: Option<u32>,
    /// User ID, if the application runs on this machine.
    #[serde(default)]
    pub uid: Option<u32>,
    /// Name of its process, or its remote address.
    pub name: String,
    /// Kind of its link: shared_memory or tcp.
    pub link: String,
    /// Time since it attached, ms.
    pub attached_ms: u64,
    /// Number of sockets.
    pub sockets: u64,
    /// Number of sockets that listen.
    pub listeners: u64,
    /// Number of sockets that are connected or connecting.
    pub connections: u64,
    /// Traffic between the application and the adapter.
    pub bus: BusRow,
}

/// Traffic between an application and the adapter, as counted by one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusRow {
    /// The ring from the application to the adapter.
    pub requests: RingRow,
    /// The ring from the adapter to the application.
    pub responses: RingRow,
    /// DMA operations, and bytes by purpose.
    pub crossings: Accounting,
    /// Doorbells that this side rang because the other side slept.
    pub doorbells_rung: u64,
    /// Transfers that needed no doorbell because the other side was awake.
    pub doorbells_saved: u64,
    /// Memory shared by both sides, bytes.
    pub memory_bytes: u64,
}

/// State of one ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingRow {
    /// Descriptors waiting on this side.
    pub waiting: u64,
    /// Descriptors per transfer.
    pub per_transfer: EntriesPerTransfer,
    /// Entries for which the queue had no space.
    pub full: u64,
    /// Transfers for which the other side did not have enough space.
    pub held_up: u64,
}

impl From<&DescriptorQueue> for RingRow {
    fn from(queue: &DescriptorQueue) -> Self {
        let stats = queue.stats();
        Self {
            waiting: queue.len() as u64,
            per_transfer: stats.per_transfer,
            full: stats.full,
            held_up: stats.held_up,
        }
    }
}

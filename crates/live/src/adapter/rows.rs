//! What a snapshot tells of applications and of what crosses between them and the adapter.

use baton_bus::{Accounting, DescriptorQueue, EntriesPerTransfer};
use serde::{Deserialize, Serialize};

/// One application of an adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationRow {
    /// Its number, as the connections' rows give it.
    pub number: u32,
    /// Its process, where it is on this machine.
    pub pid: Option<u32>,
    /// Its user, where it is on this machine.
    #[serde(default)]
    pub uid: Option<u32>,
    /// The name of its process, or where it comes from.
    pub name: String,
    /// Kind of its link: shared_memory or tcp.
    pub link: String,
    /// Time since it attached, ms.
    pub attached_ms: u64,
    /// Sockets.
    pub sockets: u64,
    /// Those of them that listen.
    pub listeners: u64,
    /// Those of them that are connected, or are to be.
    pub connections: u64,
    /// What crosses.
    pub bus: BusRow,
}

/// What crosses between an application and the adapter, as one side counts it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusRow {
    /// From the application to the adapter.
    pub requests: RingRow,
    /// From the adapter to the application.
    pub responses: RingRow,
    /// DMA operations, and bytes by what they are for.
    pub crossings: Accounting,
    /// Doorbells that this side rang because the other slept.
    pub doorbells_rung: u64,
    /// Transfers that needed none, because the other was awake.
    pub doorbells_saved: u64,
    /// Memory that both share, bytes.
    pub memory_bytes: u64,
}

/// One ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingRow {
    /// Descriptors that wait on this side.
    pub waiting: u64,
    /// Descriptors in each transfer.
    pub per_transfer: EntriesPerTransfer,
    /// Entries that found no room.
    pub full: u64,
    /// Times that the other side had no room for all of a transfer.
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

//! Parameters of the kernel.

use crate::selection::SelectionConfig;
use serde::{Deserialize, Serialize};

/// Parameters of the kernel. Socket-buffer sizes are TCP's ([`baton_tcp::Config`]): both owners of a connection share them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Connections that may wait for the application to accept them, and as many again whose handshake is not over.
    pub backlog: u32,
    /// Room in a full send buffer at which its writer is woken, bytes (`so_snd.sb_lowat`).
    pub send_low_water_bytes: u32,
    /// The most mbufs (256-byte buffers) the kernel allocates.
    pub mbufs: u32,
    /// The most clusters (2 KiB buffers) the kernel allocates.
    pub clusters: u32,
    /// Buckets of the connection hash table.
    pub hash_buckets: u32,
    /// Entries of the ring from NIC to host, each with a buffer ready for one packet.
    pub receive_ring_entries: u32,
    /// Entries of the ring from host to NIC.
    pub transmit_ring_entries: u32,
    /// Packets and commands that may wait in the driver for a place on the ring.
    pub transmit_queue_entries: u32,
    /// Which connections to hand off.
    pub selection: SelectionConfig,
    /// Handles, hence the most connections that can be handed off at one time.
    pub handles: u32,
    /// Packets kept for one connection while it is on its way to the NIC or back; more are dropped.
    pub deferred_packets: u32,
    /// Receive buffers that stand ready for one offloaded connection, bytes.
    pub post_receive_bytes: u32,
    /// The NIC is told how much the application has read every so many bytes.
    pub received_bytes: u32,
    /// Whether the host takes a connection back when the NIC asks to be relieved of it.
    pub relief: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backlog: 1024,
            send_low_water_bytes: 2048,
            mbufs: 1 << 20,
            clusters: 1 << 19,
            hash_buckets: 4096,
            receive_ring_entries: 512,
            transmit_ring_entries: 512,
            transmit_queue_entries: 65_536,
            selection: SelectionConfig::Fcfs,
            handles: 65_536,
            deferred_packets: 64,
            post_receive_bytes: 65_536,
            received_bytes: 8192,
            relief: true,
        }
    }
}

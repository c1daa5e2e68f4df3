//! Parameters of the firmware.

use serde::{Deserialize, Serialize};

/// In which order queued work is done (handoff-policies 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served over all queues.
    Fcfs,
    /// Received host packets and host packets to send before commands, commands before NIC packets.
    HostFirst,
}

/// What the NIC does to get out of overload (handoff-policies 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relief {
    /// Wait for connections to end.
    Passive,
    /// Ask the host to take the busiest connections back.
    Active,
}

/// Load control: Hiwat, Lowat and the step sizes; Qlen, Cnum and Soft_Limit are state, Hard_Limit is `Config::connections`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadControl {
    /// Whether it runs at all.
    pub enabled: bool,
    /// Hiwat, packets on the NIC receive queue.
    pub high_water_packets: u32,
    /// Lowat, packets on the NIC receive queue.
    pub low_water_packets: u32,
    /// Soft_Limit falls to Cnum less this many per cent of Cnum (at least one) on overload.
    pub decrease_percent: u32,
    /// Soft_Limit rises by this many per cent of Hard_Limit (at least one) on underload.
    pub increase_percent: u32,
    /// Passive waits, active asks for relief.
    pub relief: Relief,
}

impl Default for LoadControl {
    fn default() -> Self {
        Self {
            enabled: false,
            high_water_packets: 1024,
            low_water_packets: 256,
            decrease_percent: 10,
            increase_percent: 2,
            relief: Relief::Passive,
        }
    }
}

/// Parameters of the firmware. Times and rates belong to the machine around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Hard_Limit: the most connections the NIC holds; 0 turns handoff off.
    pub connections: u32,
    /// Scheduler.
    pub scheduler: Scheduler,
    /// Load control.
    pub load_control: LoadControl,
    /// On-board memory, KiB: connection blocks and received packets. Connections leave an eighth of it, and at least 16 KiB, to
    /// packets.
    pub memory_kib: u32,
    /// Memory of one connection, bytes.
    pub connection_bytes: u32,
    /// Received packets that may wait after lookup, in each of the two queues.
    pub receive_queue_packets: u32,
    /// Received packets that may wait for lookup. Under FCFS, where lookup waits its turn, this is *the* receive queue.
    pub arrival_queue_packets: u32,
    /// Packets of the host that may wait to be sent, and as many commands that may wait to be carried out.
    pub descriptor_queue_entries: u32,
    /// Acknowledged bytes of one connection are reported at once when its send buffer runs dry, else by so many bytes.
    pub acknowledge_bytes: u32,
    /// Segments that the NIC's TCP sends in one piece of work, which nothing interrupts.
    pub transmit_burst_segments: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connections: 1024,
            scheduler: Scheduler::HostFirst,
            load_control: LoadControl::default(),
            memory_kib: 32 * 1024,
            connection_bytes: 2048,
            receive_queue_packets: 2048,
            arrival_queue_packets: 512,
            descriptor_queue_entries: 512,
            acknowledge_bytes: 8192,
            transmit_burst_segments: 1,
        }
    }
}

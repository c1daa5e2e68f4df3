//! The NIC's processor, interrupts and firmware costs.

use super::{Invalid, positive};
use crate::hardware::NicProcessorConfig;
use baton_nic::Task;
use serde::{Deserialize, Serialize};

/// The NIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicConfig {
    /// Instruction rate of its processor, millions a second.
    pub mips: u32,
    /// Firmware parameters.
    pub firmware: baton_nic::Config,
    /// When the host is interrupted.
    pub interrupt: InterruptConfig,
    /// Multipliers of the instruction counts, in per cent.
    pub scale: NicScale,
    /// Instructions per task.
    pub instructions: NicInstructions,
}

/// Multipliers of instruction counts by group, per cent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicScale {
    /// Lookup, and passing packets of host connections on.
    pub host: u32,
    /// All work for offloaded connections.
    pub offload: u32,
}

impl Default for NicScale {
    fn default() -> Self {
        Self {
            host: 100,
            offload: 100,
        }
    }
}

/// Interrupt coalescing: whichever comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InterruptConfig {
    /// Interrupt when this many entries wait for the host.
    pub count: u32,
    /// Interrupt when the oldest entry has waited this long, microseconds.
    pub delay_us: u64,
}

impl Default for InterruptConfig {
    fn default() -> Self {
        Self {
            count: 8,
            delay_us: 20,
        }
    }
}

macro_rules! nic_instructions {
    ($($field:ident = $task:ident: $default:literal,)*) => {
        /// Instructions per firmware task. One field per [`Task`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[allow(missing_docs)]
        pub struct NicInstructions { $(pub $field: u32,)* }

        impl Default for NicInstructions {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl NicInstructions {
            /// The count of one task.
            pub fn of(&self, task: Task) -> u32 {
                match task { $(Task::$task => self.$field,)* }
            }
        }
    };
}

nic_instructions! {
    lookup = Lookup: 100,
    host_receive = HostReceive: 500,
    host_send = HostSend: 600,
    receive = Receive: 1800,
    transmit = Transmit: 2200,
    command = Command: 800,
    handoff = Handoff: 3000,
    restore = Restore: 3000,
    event = Event: 400,
    timer = Timer: 300,
    cache_insert = CacheInsert: 300,
    append_memory = AppendMemory: 100,
    append_cache = AppendCache: 100,
    copy_line = CopyLine: 32,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            mips: 400,
            firmware: baton_nic::Config::default(),
            interrupt: InterruptConfig::default(),
            scale: NicScale::default(),
            instructions: NicInstructions::default(),
        }
    }
}

impl NicConfig {
    /// Instructions of one `task`, scaled.
    pub(crate) fn instructions_of(&self, task: Task) -> u32 {
        let scale = match task {
            Task::Lookup
            | Task::HostReceive
            | Task::HostSend
            | Task::CacheInsert
            | Task::AppendMemory
            | Task::AppendCache
            | Task::CopyLine => self.scale.host,
            _ => self.scale.offload,
        };
        let scaled = u64::from(self.instructions.of(task)) * u64::from(scale) / 100;
        u32::try_from(scaled).unwrap_or(u32::MAX)
    }

    /// Its processor.
    pub(crate) fn processor(&self) -> NicProcessorConfig {
        NicProcessorConfig { mips: self.mips }
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        self.processor().validate().map_err(|e| e.within("nic"))?;
        let burst = u64::from(self.firmware.transmit_burst_segments);
        positive("nic.firmware.transmit_burst_segments", burst)?;
        positive("nic.interrupt.count", u64::from(self.interrupt.count))?;
        let firmware = &self.firmware;
        positive(
            "nic.firmware.receive_queue_packets",
            u64::from(firmware.receive_queue_packets),
        )?;
        positive(
            "nic.firmware.arrival_queue_packets",
            u64::from(firmware.arrival_queue_packets),
        )?;
        positive(
            "nic.firmware.descriptor_queue_entries",
            u64::from(firmware.descriptor_queue_entries),
        )?;
        let load = &firmware.load_control;
        if load.low_water_packets >= load.high_water_packets {
            let path = "nic.firmware.load_control.low_water_packets";
            return Err(Invalid::new(
                path,
                load.low_water_packets,
                "less than high_water_packets",
            ));
        }
        let needed = u64::from(firmware.connections) * u64::from(firmware.connection_bytes);
        if needed > u64::from(firmware.memory_kib) * 1024 {
            return Err(Invalid::new(
                "nic.firmware.connections",
                firmware.connections,
                "connections that fit into memory_kib at connection_bytes each",
            ));
        }
        if load.enabled && load.high_water_packets >= firmware.receive_queue_packets {
            let path = "nic.firmware.load_control.high_water_packets";
            return Err(Invalid::new(
                path,
                load.high_water_packets,
                "less than receive_queue_packets",
            ));
        }
        Ok(())
    }
}

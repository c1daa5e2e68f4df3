//! The NIC's processor, its use of the interconnect, and firmware costs.

use super::{Invalid, one_to, positive};
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
    /// How it uses the interconnect, where that takes time.
    pub dma: DmaConfig,
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

/// How a NIC uses the interconnect. Without effect where that is ideal.
/// What goes together is said by [batching](crate::config::OffloadConfig).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DmaConfig {
    /// Bytes of an entry of the driver's ring: one contiguous piece of host memory.
    pub descriptor_bytes: u32,
    /// Bytes of an entry of the host's ring, and of the descriptor of a receive buffer.
    pub event_bytes: u32,
    /// Reads of packet data under way at a time. If that is more than one and takes no set-up, the parts of a packet are taken up
    /// together, and their places are free for others when all are there.
    pub reads_in_flight: u32,
    /// From the end of a read of packet data to the next, while the DMA engine is set up for that, nanoseconds.
    pub read_setup_ns: u32,
    /// Packets that may wait for data from host memory, and as many for a write to it; the firmware pauses meanwhile.
    pub packets_in_flight: u32,
    /// Registers of the NIC that the driver writes while it handles an interrupt.
    pub interrupt_register_writes: u32,
}

impl Default for DmaConfig {
    fn default() -> Self {
        Self {
            descriptor_bytes: 32,
            event_bytes: 32,
            reads_in_flight: 16,
            read_setup_ns: 0,
            packets_in_flight: 64,
            interrupt_register_writes: 1,
        }
    }
}

/// A millisecond: more is no engine.
const MOST_SETUP_NS: u32 = 1_000_000;

impl DmaConfig {
    fn validate(&self) -> Result<(), Invalid> {
        for (name, value, most) in [
            ("descriptor_bytes", self.descriptor_bytes, 4096),
            ("event_bytes", self.event_bytes, 4096),
            ("reads_in_flight", self.reads_in_flight, 65_536),
            ("packets_in_flight", self.packets_in_flight, 65_536),
        ] {
            one_to(most, &format!("nic.dma.{name}"), value)?;
        }
        if self.read_setup_ns > MOST_SETUP_NS {
            let expected = format!("0 to {MOST_SETUP_NS}");
            let path = "nic.dma.read_setup_ns";
            return Err(Invalid::new(path, self.read_setup_ns, &expected));
        }
        if self.interrupt_register_writes > 1000 {
            let path = "nic.dma.interrupt_register_writes";
            let found = self.interrupt_register_writes;
            return Err(Invalid::new(path, found, "0 to 1000"));
        }
        Ok(())
    }
}

macro_rules! nic_instructions {
    ($($(#[$doc:meta])* $field:ident = $task:ident: $default:literal,)*) => {
        /// Instructions per firmware task. One field per [`Task`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[allow(missing_docs)]
        pub struct NicInstructions { $($(#[$doc])* pub $field: u32,)* }

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
    /// Assumed: half of what a packet of the host costs.
    cache_insert = CacheInsert: 300,
    /// Assumed: read a descriptor, start a transfer.
    append_memory = AppendMemory: 100,
    /// Assumed: read a descriptor, add to what the transmit engine gathers.
    append_cache = AppendCache: 100,
    /// Assumed: a load and a store for each four bytes.
    copy_line = CopyLine: 32,
    /// Assumed: half of what an event costs.
    transfer = Transfer: 200,
    /// Assumed: the same.
    dma = Dma: 200,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            mips: 400,
            firmware: baton_nic::Config::default(),
            dma: DmaConfig::default(),
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
        self.dma.validate()?;
        let burst = u64::from(self.firmware.transmit_burst_segments);
        positive("nic.firmware.transmit_burst_segments", burst)?;
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
        let needed = u64::from(firmware.hard_limit) * u64::from(firmware.connection_bytes);
        if needed > u64::from(firmware.memory_kib) * 1024 {
            return Err(Invalid::new(
                "nic.firmware.hard_limit",
                firmware.hard_limit,
                "connections that fit into memory_kib at connection_bytes each",
            ));
        }
        firmware.validate().map_err(|error| {
            let path = format!("nic.firmware.{}", error.field);
            Invalid::new(&path, error.value, error.expected)
        })?;
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

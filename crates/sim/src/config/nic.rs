//! The NIC's processor, its use of the interconnect, and firmware costs.

use super::{Experiment, Invalid, one_to, positive};
use crate::hardware::NicProcessorConfig;
use crate::hardware::nic::{Checksums, NicHardware};
use baton_kernel::AdapterChecksums;
use baton_nic::{LoadMeasure, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The NIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicConfig {
    /// Instruction rate of the NIC's processor, millions per second.
    #[schemars(range(min = 1, max = NicProcessorConfig::MOST_MIPS), extend("x-unit" = "MIPS"))]
    pub mips: u32,
    /// Firmware parameters.
    pub firmware: baton_nic::Config,
    /// How the NIC uses the interconnect. Without effect if the interconnect is ideal.
    pub dma: DmaConfig,
    /// Multipliers of the instruction counts, in per cent.
    pub scale: NicScale,
    /// Instructions per task.
    pub instructions: NicInstructions,
    /// The hash table in which the firmware looks up the connection of a received packet.
    pub lookup: LookupConfig,
    /// Link, rings, packet memory, engines and interrupts below the firmware: a table, or the name of a NIC that `baton list nics` shows.
    /// Absent: they take no time and have no limits of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Box<NicHardware>>,
}

/// A hash table whose chains the firmware searches, at a cost in addition to that of every lookup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LookupConfig {
    /// Number of chains. 0: the cost of a lookup does not depend on the number of connections on the NIC.
    pub buckets: u32,
    /// Instructions to compare a packet with a connection of its chain, scaled like those of a lookup.
    pub compare_instructions: u32,
}

/// Multipliers of instruction counts by group, per cent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-unit" = "%"))]
pub struct NicScale {
    /// Lookup, and forwarding of packets of host connections.
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

/// How a NIC uses the interconnect. Without effect if the interconnect is ideal. Which descriptors cross together is decided by
/// [batching](crate::config::OffloadConfig).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DmaConfig {
    /// Bytes of an entry of the driver's ring, which describes one contiguous piece of host memory.
    #[schemars(range(min = 1, max = MOST_ENTRY_BYTES))]
    pub descriptor_bytes: u32,
    /// Bytes of an entry of the host's ring, and of the descriptor of a receive buffer.
    #[schemars(range(min = 1, max = MOST_ENTRY_BYTES))]
    pub event_bytes: u32,
    /// Maximum number of reads of packet data in progress. If it is above 1 and `read_setup_ns` is 0, all parts of a packet are read
    /// together, and their slots become free together.
    #[schemars(range(min = 1, max = MOST_IN_FLIGHT))]
    pub reads_in_flight: u32,
    /// Time from the end of a read of packet data to the start of the next, for setting up the DMA engine, nanoseconds.
    #[schemars(range(max = MOST_SETUP_NS))]
    pub read_setup_ns: u32,
    /// Time between the starts of two writes of data to host memory, for setting up the DMA engine, nanoseconds.
    #[schemars(range(max = MOST_SETUP_NS))]
    pub write_setup_ns: u32,
    /// Maximum bytes of one read of data; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub read_limit_bytes: Option<u32>,
    /// Maximum bytes of one write of data; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub write_limit_bytes: Option<u32>,
    /// Number of data transfers in progress, in both directions together, at which the firmware takes no further requests.
    #[schemars(range(min = 1, max = MOST_IN_FLIGHT))]
    pub packets_in_flight: u32,
    /// Registers of the NIC that the driver writes while it handles an interrupt.
    #[schemars(range(max = MOST_REGISTER_WRITES))]
    pub interrupt_register_writes: u32,
    /// Maximum number of register writes not yet taken by the interconnect while the processor continues to work; with more, it waits.
    /// Absent: it never waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posted_register_writes: Option<u32>,
}

impl Default for DmaConfig {
    fn default() -> Self {
        Self {
            descriptor_bytes: 32,
            event_bytes: 32,
            reads_in_flight: 16,
            read_setup_ns: 0,
            write_setup_ns: 0,
            read_limit_bytes: None,
            write_limit_bytes: None,
            packets_in_flight: 64,
            interrupt_register_writes: 1,
            posted_register_writes: None,
        }
    }
}

/// One millisecond: more is not a plausible DMA engine.
const MOST_SETUP_NS: u32 = 1_000_000;
const MOST_ENTRY_BYTES: u32 = 4096;
const MOST_IN_FLIGHT: u32 = 65_536;
const MOST_REGISTER_WRITES: u32 = 1000;

impl DmaConfig {
    fn validate(&self) -> Result<(), Invalid> {
        for (name, value, most) in [
            ("descriptor_bytes", self.descriptor_bytes, MOST_ENTRY_BYTES),
            ("event_bytes", self.event_bytes, MOST_ENTRY_BYTES),
            ("reads_in_flight", self.reads_in_flight, MOST_IN_FLIGHT),
            ("packets_in_flight", self.packets_in_flight, MOST_IN_FLIGHT),
        ] {
            one_to(most, &format!("nic.dma.{name}"), value)?;
        }
        for (name, setup_ns) in [
            ("read_setup_ns", self.read_setup_ns),
            ("write_setup_ns", self.write_setup_ns),
        ] {
            if setup_ns > MOST_SETUP_NS {
                let expected = format!("0 to {MOST_SETUP_NS}");
                return Err(Invalid::new(
                    &format!("nic.dma.{name}"),
                    setup_ns,
                    &expected,
                ));
            }
        }
        for (name, limit) in [
            ("read_limit_bytes", self.read_limit_bytes),
            ("write_limit_bytes", self.write_limit_bytes),
        ] {
            positive(&format!("nic.dma.{name}"), limit.unwrap_or(1).into())?;
        }
        if self.interrupt_register_writes > MOST_REGISTER_WRITES {
            let path = "nic.dma.interrupt_register_writes";
            let found = self.interrupt_register_writes;
            let expected = format!("0 to {MOST_REGISTER_WRITES}");
            return Err(Invalid::new(path, found, &expected));
        }
        Ok(())
    }
}

macro_rules! nic_instructions {
    ($($(#[$doc:meta])* $field:ident = $task:ident: $default:literal,)*) => {
        /// Instructions per firmware task. One field per [`Task`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(extend("x-unit" = "instructions"))]
        pub struct NicInstructions { $($(#[$doc])* pub $field: u32,)* }

        impl Default for NicInstructions {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl NicInstructions {
            /// Returns the instruction count of a task.
            pub fn of(&self, task: Task) -> u32 {
                match task { $(Task::$task => self.$field,)* }
            }
        }
    };
}

nic_instructions! {
    /// Decide whether a received packet belongs to a connection on the NIC.
    lookup = Lookup: 100,
    /// Pass a received packet to the host.
    host_receive = HostReceive: 500,
    /// Send a packet of the host.
    host_send = HostSend: 600,
    /// TCP input of a NIC packet.
    receive = Receive: 1800,
    /// TCP output of one segment.
    transmit = Transmit: 2200,
    /// Read and carry out a command other than handoff and restore.
    command = Command: 800,
    /// Take over a connection.
    handoff = Handoff: 3000,
    /// Give a connection back.
    restore = Restore: 3000,
    /// Post an event to the host.
    event = Event: 400,
    /// Run a timer of a connection.
    timer = Timer: 300,
    /// Carry out a nic_cache_init or nic_cache_insert. Assumed: half of what a packet of the host costs.
    cache_insert = CacheInsert: 300,
    /// Append a part in host memory, other than headers, to a packet. Assumed: read a descriptor, start a transfer.
    append_memory = AppendMemory: 100,
    /// Append a part in the cache to a packet. Assumed: read a descriptor, add to what the transmit engine gathers.
    append_cache = AppendCache: 100,
    /// Copy 64 bytes within on-board memory, where the transmit engine cannot gather. Assumed: a load and a store for each four bytes.
    copy_line = CopyLine: 32,
    /// Begin a transfer of responses to the host. Assumed: half of what an event costs.
    transfer = Transfer: 200,
    /// Begin a transfer of data, or notice its completion. Assumed: half of what an event costs.
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
            lookup: LookupConfig::default(),
            hardware: None,
        }
    }
}

impl NicConfig {
    /// Returns the scaled instruction count of a `task`.
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

    /// Returns the configuration of the NIC's processor.
    pub fn processor(&self) -> NicProcessorConfig {
        NicProcessorConfig { mips: self.mips }
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        self.processor().validate().map_err(|e| e.within("nic"))?;
        self.dma.validate()?;
        if let Some(hardware) = &self.hardware {
            hardware.validate().map_err(|e| e.within("nic.hardware"))?;
        }
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
        let [(lowat, low), (hiwat, high)] = load.marks();
        if low >= high {
            let path = format!("nic.firmware.load_control.{lowat}");
            return Err(Invalid::new(&path, low, &format!("less than {hiwat}")));
        }
        let path = "nic.firmware.load_control.measure_us";
        positive(path, load.measure_us.into())?;
        let memory = u64::from(firmware.memory_kib) * 1024;
        let fitting = memory.checked_div(firmware.connection_bytes.into());
        if let Some(most) = fitting.filter(|&most| u64::from(firmware.hard_limit) > most) {
            let expected =
                format!("at most {most}, which fit into memory_kib at connection_bytes each");
            let path = "nic.firmware.hard_limit";
            return Err(Invalid::new(path, firmware.hard_limit, &expected));
        }
        firmware.validate().map_err(|error| {
            let path = format!("nic.firmware.{}", error.field);
            Invalid::new(&path, error.value, error.expected)
        })?;
        let by_queue = load.enabled && load.measure == LoadMeasure::Queue;
        if by_queue && load.high_water_packets >= firmware.receive_queue_packets {
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

impl NicConfig {
    /// Returns which TCP checksums the NIC computes and verifies: all, if it has no `hardware`.
    pub(crate) fn checksums(&self) -> AdapterChecksums {
        let hardware = self.hardware.as_deref();
        let Checksums { send, receive } =
            hardware.map_or_else(Checksums::default, |hardware| hardware.checksums);
        AdapterChecksums { send, receive }
    }
}

impl Experiment {
    /// Sets the keys whose values follow from the hardware of this NIC.
    pub(super) fn use_hardware(&mut self) {
        let Some(hardware) = self.nic.hardware.as_deref_mut() else {
            return;
        };
        // Clients have no NICs that pause frames could stop.
        hardware.pause.sends = false;
        let (rings, dma) = (hardware.descriptors, hardware.dma);
        self.wire.rate_mbps = hardware.link.mbps;
        self.nic.dma = DmaConfig {
            descriptor_bytes: rings.send_bytes,
            event_bytes: rings.arrived_bytes(),
            reads_in_flight: dma.frames,
            packets_in_flight: dma.frames,
            read_setup_ns: dma.start_ns,
            write_setup_ns: dma.receive_start_ns.unwrap_or(dma.start_ns),
            read_limit_bytes: dma.send_limit_bytes,
            write_limit_bytes: dma.receive_limit_bytes,
            interrupt_register_writes: u32::from(hardware.driver.reads_cause),
            posted_register_writes: None,
        };
        let interface = &mut self.offload.host.interface;
        interface.packet_buffers = rings.receive;
        interface.packet_sends = Some(rings.send.max(LEAST_SENDS));
        let most = &mut self.offload.adapter.interface.most_packets;
        *most = (*most).max(rings.receive).max(rings.send);
    }
}

/// Maximum number of parts of a packet, each of which takes a descriptor.
const LEAST_SENDS: u32 = 16;

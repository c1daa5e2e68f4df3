//! The hardware of a NIC: link, bus, rings, packet memory, engines, DMA, interrupts.

use super::super::config_error::{ConfigError, check_range};
use baton_bus::interconnect::InterconnectConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A NIC, as its driver and its bus see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicHardware {
    /// Name of a NIC that `baton list nics` shows, or a file. Its values are the defaults of this table.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Name of the NIC.
    pub name: String,
    /// The host on which `baton bench` tests the NIC: a name that `baton list hosts` shows, or a file.
    pub host: String,
    /// Rate of the NIC's link.
    pub link: LinkRate,
    /// The host's bus, as wide as the NIC supports: a table with the keys of `interconnect`, or a name such as `pci-64-66`.
    #[schemars(extend("x-differs-from" = "interconnect"))]
    pub bus: InterconnectConfig,
    /// Descriptor rings.
    pub descriptors: Descriptors,
    /// Packet memory on the NIC.
    pub memory: PacketMemory,
    /// Processors that handle frames.
    pub processor: NicProcessing,
    /// DMA engine.
    pub dma: Dma,
    /// Interrupts for frames that were sent.
    pub send_interrupts: CoalescingRule,
    /// Interrupts for frames that were received.
    pub receive_interrupts: CoalescingRule,
    /// Checksum offloads.
    pub checksums: Checksums,
    /// Flow control (802.3x).
    pub pause: PauseRule,
    /// Behaviour of the driver.
    pub driver: DriverRule,
    /// Whether interrupts are messages on the bus (MSI) instead of a line.
    pub messages: bool,
    /// Whether `baton bench` tests the NIC with an adapter, whose firmware (`nic.mips`, `nic.instructions`, `nic.firmware`) looks up each frame.
    /// In a run a NIC always has one.
    pub adapter: bool,
    /// Maximum number of queue pairs, each with a send and a receive queue. Each processor has a pair of its own; receive-side scaling
    /// spreads frames over them.
    #[schemars(range(min = 1))]
    pub queues: u8,
}

impl Descriptors {
    /// Returns the bytes that the NIC writes for each received frame.
    pub fn arrived_bytes(&self) -> u32 {
        self.received_bytes.unwrap_or(self.receive_bytes)
    }

    /// Returns the bytes that the NIC writes for each frame whose completion it reports.
    pub fn written_bytes(&self) -> u32 {
        self.sent_bytes.unwrap_or(self.send_bytes)
    }
}

/// Descriptor rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Descriptors {
    /// Descriptors in the driver's send ring.
    #[schemars(range(min = RING.0, max = RING.1))]
    pub send: u32,
    /// Descriptors in the driver's receive ring.
    #[schemars(range(min = RING.0, max = RING.1))]
    pub receive: u32,
    /// Bytes of a send descriptor.
    #[schemars(range(min = 1, max = MOST_DESCRIPTOR_BYTES))]
    pub send_bytes: u32,
    /// Bytes of a receive descriptor, which the NIC reads and writes back.
    #[schemars(range(min = 1, max = MOST_DESCRIPTOR_BYTES))]
    pub receive_bytes: u32,
    /// Bytes that the NIC writes to report a received frame, if less than a whole descriptor.
    #[schemars(range(min = 1, max = MOST_DESCRIPTOR_BYTES))]
    pub received_bytes: Option<u32>,
    /// Bytes that the NIC writes to report frames that were sent, if not a whole descriptor for each.
    #[schemars(range(min = 1, max = MOST_DESCRIPTOR_BYTES))]
    pub sent_bytes: Option<u32>,
    /// Maximum number of descriptors that the NIC reads by one DMA.
    #[schemars(range(min = 1))]
    pub batch: u32,
    /// Maximum number of receive descriptors that the NIC reads by one DMA, if different from `batch`.
    #[schemars(range(min = 1))]
    pub receive_batch: Option<u32>,
    /// Number of sent frames that the NIC reports together, if different from the number of descriptors that it reads.
    #[schemars(range(min = 1))]
    pub written_back: Option<u32>,
    /// Maximum number of descriptors of either kind that the NIC holds.
    pub held: u32,
}

/// Packet memory on the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacketMemory {
    /// Bytes for frames to send.
    #[schemars(range(min = LEAST_MEMORY))]
    pub send_bytes: u32,
    /// Bytes for received frames.
    #[schemars(range(min = LEAST_MEMORY))]
    pub receive_bytes: u32,
    /// Bandwidth in Mb/s; each bit is written and read. Absent: no limit.
    #[schemars(range(min = 1))]
    pub bandwidth_mbps: Option<u32>,
}

/// What handles frames: firmware on processors, or state machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicProcessing {
    /// 1: one engine that alternates between both directions. 2: one engine for each direction.
    #[schemars(range(min = 1, max = 2))]
    pub engines: u32,
    /// Time to handle a frame to send, in nanoseconds.
    pub send_ns: u32,
    /// Time to handle a received frame, in nanoseconds.
    pub receive_ns: u32,
    /// Additional time for a frame to send that has two buffers, one for headers and one for data, in nanoseconds.
    pub second_buffer_ns: u32,
    /// Bytes of packet memory that the firmware's code and data access for each frame.
    pub memory_bytes: u32,
}

/// DMA engine, which moves frames between host memory and packet memory in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dma {
    /// Time to start one DMA of a frame's data, in nanoseconds. DMAs are started one after the other.
    pub start_ns: u32,
    /// Time to start the DMA of a received frame, in nanoseconds, if different: its descriptor is written too.
    pub receive_start_ns: Option<u32>,
    /// Maximum number of frames in progress in each direction.
    #[schemars(range(min = 1))]
    pub frames: u32,
    /// Maximum number of bytes of one DMA from host memory.
    #[schemars(range(min = 1))]
    pub send_limit_bytes: Option<u32>,
    /// Maximum number of bytes of one DMA to host memory.
    #[schemars(range(min = 1))]
    pub receive_limit_bytes: Option<u32>,
}

/// When the NIC interrupts: as soon as one of these conditions holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoalescingRule {
    /// This many nanoseconds passed since the first unreported frame.
    pub time_ns: Option<u32>,
    /// This many frames are unreported.
    #[schemars(range(min = 1))]
    pub frames: Option<u32>,
    /// Only this many descriptors of the ring do not belong to unreported frames: the ring is nearly exhausted.
    pub other_descriptors: Option<u32>,
}

/// Checksums that the NIC computes or verifies. The host handles the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checksums {
    /// TCP checksums of frames to send.
    pub send: bool,
    /// TCP checksums of received frames.
    pub receive: bool,
}

/// Flow control (802.3x).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseRule {
    /// Whether the NIC pauses its partner.
    pub sends: bool,
    /// Whether the NIC stops when its partner sends a pause frame.
    pub honours: bool,
    /// Use of receive memory from which on the NIC pauses its partner, in per cent.
    #[schemars(range(min = 1, max = 100))]
    pub high_percent: u32,
    /// Use of receive memory at which the NIC lets its partner continue, in per cent.
    #[schemars(range(max = 99))]
    pub low_percent: u32,
}

/// Behaviour of a NIC's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DriverRule {
    /// Before it sends, the driver reclaims descriptors of sent frames if fewer than this many are free.
    pub reclaims_below: Option<u32>,
    /// Whether the driver reads the cause of an interrupt from the NIC.
    pub reads_cause: bool,
    /// Number of frames, sent back to back, for which the driver rings the doorbell once.
    #[schemars(range(min = 1))]
    pub doorbell_frames: u32,
    /// Number of sent frames after which the driver reads the NIC's progress from a register.
    #[schemars(range(min = 1))]
    pub send_reads: Option<u32>,
    /// Number of received frames after which the driver reads the NIC's progress from a register.
    #[schemars(range(min = 1))]
    pub receive_reads: Option<u32>,
    /// The driver polls and takes at most this many frames at a time; the NIC does not interrupt.
    #[schemars(range(min = 1))]
    pub polls: Option<u32>,
}

/// Rate of an Ethernet link.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields, default)]
pub struct LinkRate {
    /// Rate in each direction, in Mb/s.
    #[schemars(range(min = 10, max = MOST_MBPS))]
    pub mbps: u32,
}

impl LinkRate {
    /// One gigabit per second.
    pub const GIGABIT: Self = Self { mbps: 1_000 };

    /// Returns the bits per second in each direction.
    pub const fn bits_per_second(self) -> u64 {
        self.mbps as u64 * 1_000_000
    }
}

/// One gigabit per second.
impl Default for LinkRate {
    fn default() -> Self {
        Self::GIGABIT
    }
}

/// The fewest and the most descriptors of a ring.
const RING: (u32, u32) = (2, 65_536);
const MOST_DESCRIPTOR_BYTES: u32 = 4_096;
const LEAST_MEMORY: u32 = 2_048;
const MOST_MBPS: u32 = 800_000;

/// A NIC and a bus that take no time, so that only the wire limits them.
impl Default for NicHardware {
    fn default() -> Self {
        let at_once = CoalescingRule {
            time_ns: Some(10_000),
            frames: Some(64),
            other_descriptors: None,
        };
        Self {
            profile: String::new(),
            name: "ideal".to_owned(),
            host: "athlon-2000".to_owned(),
            link: LinkRate::GIGABIT,
            bus: InterconnectConfig::Ideal,
            descriptors: Descriptors::default(),
            memory: PacketMemory::default(),
            processor: NicProcessing::default(),
            dma: Dma::default(),
            send_interrupts: at_once,
            receive_interrupts: at_once,
            checksums: Checksums::default(),
            pause: PauseRule::default(),
            driver: DriverRule::default(),
            messages: false,
            adapter: false,
            queues: 1,
        }
    }
}

impl Default for Descriptors {
    fn default() -> Self {
        Self {
            send: 1_024,
            receive: 1_024,
            send_bytes: 16,
            receive_bytes: 16,
            batch: 64,
            held: 256,
            received_bytes: None,
            sent_bytes: None,
            receive_batch: None,
            written_back: None,
        }
    }
}

impl Default for PacketMemory {
    fn default() -> Self {
        Self {
            send_bytes: 1 << 18,
            receive_bytes: 1 << 18,
            bandwidth_mbps: None,
        }
    }
}

impl Default for NicProcessing {
    fn default() -> Self {
        Self {
            second_buffer_ns: 0,
            engines: 2,
            send_ns: 0,
            receive_ns: 0,
            memory_bytes: 0,
        }
    }
}

impl Default for Dma {
    fn default() -> Self {
        Self {
            start_ns: 0,
            receive_start_ns: None,
            send_limit_bytes: None,
            frames: 8,
            receive_limit_bytes: None,
        }
    }
}

impl Default for Checksums {
    fn default() -> Self {
        Self {
            send: true,
            receive: true,
        }
    }
}

impl Default for PauseRule {
    fn default() -> Self {
        Self {
            sends: false,
            honours: false,
            high_percent: 100,
            low_percent: 0,
        }
    }
}

impl Default for DriverRule {
    fn default() -> Self {
        Self {
            reclaims_below: None,
            reads_cause: true,
            doorbell_frames: 1,
            send_reads: None,
            receive_reads: None,
            polls: None,
        }
    }
}

impl NicHardware {
    /// Checks that such a NIC can exist.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (rings, memory, dma) = (&self.descriptors, &self.memory, &self.dma);
        let (pause, driver) = (&self.pause, &self.driver);
        let most = u32::MAX;
        let some = |count: Option<u32>| count.unwrap_or(1);
        let bytes = MOST_DESCRIPTOR_BYTES;
        for (field, value, (least, most)) in [
            ("link.mbps", self.link.mbps, (10, MOST_MBPS)),
            ("descriptors.send", rings.send, RING),
            ("descriptors.receive", rings.receive, RING),
            ("descriptors.send_bytes", rings.send_bytes, (1, bytes)),
            ("descriptors.receive_bytes", rings.receive_bytes, (1, bytes)),
            ("descriptors.sent_bytes", some(rings.sent_bytes), (1, bytes)),
            (
                "descriptors.received_bytes",
                some(rings.received_bytes),
                (1, bytes),
            ),
            ("descriptors.batch", rings.batch, (1, most)),
            (
                "descriptors.receive_batch",
                some(rings.receive_batch),
                (1, most),
            ),
            (
                "descriptors.written_back",
                some(rings.written_back),
                (1, most),
            ),
            ("memory.send_bytes", memory.send_bytes, (LEAST_MEMORY, most)),
            (
                "memory.receive_bytes",
                memory.receive_bytes,
                (LEAST_MEMORY, most),
            ),
            (
                "memory.bandwidth_mbps",
                some(memory.bandwidth_mbps),
                (1, most),
            ),
            ("processor.engines", self.processor.engines, (1, 2)),
            ("dma.frames", dma.frames, (1, most)),
            (
                "dma.send_limit_bytes",
                some(dma.send_limit_bytes),
                (1, most),
            ),
            (
                "dma.receive_limit_bytes",
                some(dma.receive_limit_bytes),
                (1, most),
            ),
            (
                "send_interrupts.frames",
                some(self.send_interrupts.frames),
                (1, most),
            ),
            (
                "receive_interrupts.frames",
                some(self.receive_interrupts.frames),
                (1, most),
            ),
            ("pause.high_percent", pause.high_percent, (1, 100)),
            ("pause.low_percent", pause.low_percent, (0, 99)),
            ("driver.doorbell_frames", driver.doorbell_frames, (1, most)),
            ("driver.send_reads", some(driver.send_reads), (1, most)),
            (
                "driver.receive_reads",
                some(driver.receive_reads),
                (1, most),
            ),
            ("driver.polls", some(driver.polls), (1, most)),
            ("queues", self.queues.into(), (1, u8::MAX.into())),
        ] {
            check_range(field, value.into(), least.into(), most.into())?;
        }
        for (field, value, is_right, expected) in [
            (
                "descriptors.held",
                rings.held,
                rings.held >= rings.batch,
                "at least descriptors.batch",
            ),
            (
                "driver.doorbell_frames",
                driver.doorbell_frames,
                driver.doorbell_frames <= rings.send / 2,
                "at most half of descriptors.send",
            ),
            (
                "pause.low_percent",
                pause.low_percent,
                pause.low_percent < pause.high_percent,
                "less than pause.high_percent",
            ),
        ] {
            if !is_right {
                return Err(ConfigError::new(field, value, expected));
            }
        }
        self.bus.validate().map_err(|error| {
            let field = format!("bus.{}", error.field);
            ConfigError::new(&field, error.value, error.expected)
        })
    }
}

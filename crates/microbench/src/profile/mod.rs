//! Profiles of NICs and hosts.

mod host;

pub use host::{ApplicationCosts, HostProfile, Instructions};

use crate::frame::LinkRate;
use baton_bus::interconnect::{InterconnectConfig, InterconnectError};
use serde::{Deserialize, Serialize};

/// A NIC, as its driver and its bus see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicProfile {
    /// Name of the NIC.
    pub name: String,
    /// Name of the profile of the host that the NIC is tested on by default.
    #[serde(default = "usual_host")]
    pub host: String,
    /// Rate of the NIC's link.
    #[serde(default)]
    pub link: LinkRate,
    /// The bus that the NIC is on: the host's bus, as wide as the NIC supports.
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
    #[serde(default)]
    pub messages: bool,
    /// Maximum number of queue pairs, each with a send and a receive queue. Each processor has a pair of its own; receive-side scaling
    /// spreads frames over them.
    #[serde(default = "one")]
    pub queues: u8,
}

fn one<T: From<u8>>() -> T {
    1.into()
}

fn usual_host() -> String {
    "athlon-2000".to_owned()
}

fn yes() -> bool {
    true
}

impl Descriptors {
    /// Returns the bytes that the NIC writes for each received frame.
    pub(crate) fn arrived_bytes(&self) -> u32 {
        self.received_bytes.unwrap_or(self.receive_bytes)
    }

    /// Returns the bytes that the NIC writes for each frame whose completion it reports.
    pub(crate) fn written_bytes(&self) -> u32 {
        self.sent_bytes.unwrap_or(self.send_bytes)
    }
}

/// Descriptor rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptors {
    /// Descriptors in the driver's send ring.
    pub send: u32,
    /// Descriptors in the driver's receive ring.
    pub receive: u32,
    /// Bytes of a send descriptor.
    pub send_bytes: u32,
    /// Bytes of a receive descriptor, which the NIC reads and writes back.
    pub receive_bytes: u32,
    /// Bytes that the NIC writes to report a received frame, if less than a whole descriptor.
    #[serde(default)]
    pub received_bytes: Option<u32>,
    /// Bytes that the NIC writes to report frames that were sent, if not a whole descriptor for each.
    #[serde(default)]
    pub sent_bytes: Option<u32>,
    /// Maximum number of descriptors that the NIC reads by one DMA.
    pub batch: u32,
    /// Maximum number of receive descriptors that the NIC reads by one DMA, if different from `batch`.
    #[serde(default)]
    pub receive_batch: Option<u32>,
    /// Number of sent frames that the NIC reports together, if different from the number of descriptors that it reads.
    #[serde(default)]
    pub written_back: Option<u32>,
    /// Maximum number of descriptors of either kind that the NIC holds.
    pub held: u32,
}

/// Packet memory on the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketMemory {
    /// Bytes for frames to send.
    pub send_bytes: u32,
    /// Bytes for received frames.
    pub receive_bytes: u32,
    /// Bandwidth in Mb/s; each bit is written and read. Without this value, the bandwidth never limits.
    pub bandwidth_mbps: Option<u32>,
}

/// What handles frames: firmware on processors, or state machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicProcessing {
    /// 1: one engine that alternates between both directions. 2: one engine for each direction.
    pub engines: u32,
    /// Time to handle a frame to send, in nanoseconds.
    pub send_ns: u32,
    /// Time to handle a received frame, in nanoseconds.
    pub receive_ns: u32,
    /// Additional time for a frame to send that has two buffers, one for headers and one for data, in nanoseconds.
    #[serde(default)]
    pub second_buffer_ns: u32,
    /// Bytes of packet memory that the firmware's code and data access for each frame.
    #[serde(default)]
    pub memory_bytes: u32,
}

/// DMA engine, which moves frames between host memory and packet memory in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dma {
    /// Time to start one DMA of a frame's data, in nanoseconds. DMAs are started one after the other.
    pub start_ns: u32,
    /// Time to start the DMA of a received frame, in nanoseconds, if different: its descriptor is written too.
    #[serde(default)]
    pub receive_start_ns: Option<u32>,
    /// Maximum number of frames in progress in each direction.
    pub frames: u32,
    /// Maximum number of bytes of one DMA from host memory.
    #[serde(default)]
    pub send_limit_bytes: Option<u32>,
    /// Maximum number of bytes of one DMA to host memory.
    pub receive_limit_bytes: Option<u32>,
}

/// When the NIC interrupts: as soon as one of these conditions holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoalescingRule {
    /// This many nanoseconds passed since the first unreported frame.
    pub time_ns: Option<u32>,
    /// This many frames are unreported.
    pub frames: Option<u32>,
    /// Only this many descriptors of the ring do not belong to unreported frames: the ring is nearly exhausted.
    pub other_descriptors: Option<u32>,
}

/// Checksums that the NIC computes or verifies. The host handles the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checksums {
    /// TCP checksums of frames to send.
    pub send: bool,
    /// TCP checksums of received frames.
    pub receive: bool,
}

/// Flow control (802.3x).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseRule {
    /// Whether the NIC pauses its partner.
    pub sends: bool,
    /// Whether the NIC stops when its partner sends a pause frame.
    pub honours: bool,
    /// Use of receive memory from which on the NIC pauses its partner, in per cent.
    pub high_percent: u32,
    /// Use of receive memory at which the NIC lets its partner continue, in per cent.
    pub low_percent: u32,
}

/// Behaviour of a NIC's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverRule {
    /// Before it sends, the driver reclaims descriptors of sent frames if fewer than this many are free.
    pub reclaims_below: Option<u32>,
    /// Whether the driver reads the cause of an interrupt from the NIC.
    #[serde(default = "yes")]
    pub reads_cause: bool,
    /// Number of frames, sent back to back, for which the driver rings the doorbell once.
    #[serde(default = "one")]
    pub doorbell_frames: u32,
    /// Number of sent frames after which the driver reads the NIC's progress from a register.
    #[serde(default)]
    pub send_reads: Option<u32>,
    /// Number of received frames after which the driver reads the NIC's progress from a register.
    #[serde(default)]
    pub receive_reads: Option<u32>,
    /// The driver polls and takes at most this many frames at a time; the NIC does not interrupt.
    #[serde(default)]
    pub polls: Option<u32>,
}

/// A profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML, or fields are missing or unknown.
    #[error("{0}")]
    Malformed(String),
    /// A field has an impossible value.
    #[error("{field} = {value}: expected {expected}")]
    Value {
        /// Name of the field, with the names of the enclosing tables.
        field: &'static str,
        /// The field's value.
        value: u64,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// A part that cannot be built.
    #[error("{table}.{reason}")]
    Part {
        /// The table of the part.
        table: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

macro_rules! shipped {
    ($($name:literal: $path:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../profiles/", $path)))),+]
    };
}

/// The six NICs of the report, in its order (best application results first), then current NICs, slowest first.
const NICS: [(&str, &str); 9] = shipped! {
    "nic-intel-server": "nics/nic-intel-server.toml",
    "nic-intel-desktop": "nics/nic-intel-desktop.toml",
    "nic-ace-optimized": "nics/nic-ace-optimized.toml",
    "nic-netgear": "nics/nic-netgear.toml",
    "nic-3com": "nics/nic-3com.toml",
    "nic-ace": "nics/nic-ace.toml",
    "nic-xxv710": "nics/nic-xxv710.toml",
    "nic-e810": "nics/nic-e810.toml",
    "nic-connectx-7": "nics/nic-connectx-7.toml",
};

/// Number of NICs of the report.
const OF_REPORT: usize = 6;

const HOSTS: [(&str, &str); 3] = shipped! {
    "athlon-2000": "hosts/athlon-2000.toml",
    "athlon-2600": "hosts/athlon-2600.toml",
    "xeon-2021": "hosts/xeon-2021.toml",
};

fn find(all: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    all.iter()
        .find(|(one, _)| *one == name)
        .map(|(_, text)| *text)
}

impl NicProfile {
    /// Returns the names of the profiles that ship with the program: the NICs of the report, in its order, then current NICs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NICS.iter().map(|(name, _)| *name)
    }

    /// Returns the NICs of the report, in its order.
    ///
    /// # Panics
    /// Never: the profiles ship with the program.
    pub fn of_report() -> Vec<Self> {
        let names = Self::names().take(OF_REPORT);
        names.filter_map(Self::shipped).collect()
    }

    /// Returns a profile that ships with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        find(&NICS, name).map(|text| {
            Self::parse(text).expect("the shipped profile is valid, which a test checks")
        })
    }

    /// Parses a profile from TOML.
    ///
    /// # Errors
    /// The text is malformed, or no such NIC can exist.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|e| ProfileError::Malformed(e.to_string()))?;
        profile.validate()?;
        Ok(profile)
    }

    /// Returns a NIC and a bus that take no time, so that only the wire limits them.
    pub fn ideal() -> Self {
        let at_once = CoalescingRule {
            time_ns: Some(10_000),
            frames: Some(64),
            other_descriptors: None,
        };
        Self {
            name: "ideal".to_owned(),
            host: usual_host(),
            link: LinkRate::GIGABIT,
            bus: InterconnectConfig::Ideal,
            descriptors: Descriptors {
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
            },
            memory: PacketMemory {
                send_bytes: 1 << 18,
                receive_bytes: 1 << 18,
                bandwidth_mbps: None,
            },
            processor: NicProcessing {
                second_buffer_ns: 0,
                engines: 2,
                send_ns: 0,
                receive_ns: 0,
                memory_bytes: 0,
            },
            dma: Dma {
                start_ns: 0,
                receive_start_ns: None,
                send_limit_bytes: None,
                frames: 8,
                receive_limit_bytes: None,
            },
            send_interrupts: at_once,
            receive_interrupts: at_once,
            checksums: Checksums {
                send: true,
                receive: true,
            },
            pause: PauseRule {
                sends: false,
                honours: false,
                high_percent: 100,
                low_percent: 0,
            },
            driver: DriverRule {
                reclaims_below: None,
                reads_cause: true,
                doorbell_frames: 1,
                send_reads: None,
                receive_reads: None,
                polls: None,
            },
            messages: false,
            queues: 1,
        }
    }

    /// Checks that such a NIC can exist.
    ///
    /// # Errors
    /// The error names the field, its value and the expected values.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let value = |field, value: u32, is_right: bool, expected| {
            let value = value.into();
            let error = ProfileError::Value {
                field,
                value,
                expected,
            };
            if is_right { Ok(()) } else { Err(error) }
        };
        let some = |field, number: u32| value(field, number, number > 0, "more than 0");
        let of_a_frame = |field, bytes: u32| value(field, bytes, bytes >= 2_048, "at least 2048");
        let (rings, pause) = (&self.descriptors, &self.pause);
        let reason = |error: InterconnectError| error.to_string();
        let mbps = self.link.mbps;
        value(
            "link.mbps",
            mbps,
            (10..=800_000).contains(&mbps),
            "10 to 800000",
        )?;
        let bus = self.bus.validate();
        bus.map_err(|error| ProfileError::Part {
            table: "bus",
            reason: reason(error),
        })?;
        for (field, ring) in [
            ("descriptors.send", rings.send),
            ("descriptors.receive", rings.receive),
        ] {
            value(field, ring, (2..=65_536).contains(&ring), "2 to 65536")?;
        }
        some("descriptors.send_bytes", rings.send_bytes)?;
        some("descriptors.receive_bytes", rings.receive_bytes)?;
        some("descriptors.batch", rings.batch)?;
        value(
            "descriptors.held",
            rings.held,
            rings.held >= rings.batch,
            "at least descriptors.batch",
        )?;
        of_a_frame("memory.send_bytes", self.memory.send_bytes)?;
        of_a_frame("memory.receive_bytes", self.memory.receive_bytes)?;
        some(
            "memory.bandwidth_mbps",
            self.memory.bandwidth_mbps.unwrap_or(1),
        )?;
        let engines = self.processor.engines;
        value(
            "processor.engines",
            engines,
            (1..=2).contains(&engines),
            "1 or 2",
        )?;
        value(
            "driver.doorbell_frames",
            self.driver.doorbell_frames,
            (1..=rings.send / 2).contains(&self.driver.doorbell_frames),
            "1 to half of descriptors.send",
        )?;
        value("queues", self.queues.into(), self.queues > 0, "more than 0")?;
        for (field, count) in [
            ("descriptors.receive_batch", rings.receive_batch),
            ("descriptors.written_back", rings.written_back),
            ("driver.send_reads", self.driver.send_reads),
            ("driver.receive_reads", self.driver.receive_reads),
            ("driver.polls", self.driver.polls),
        ] {
            some(field, count.unwrap_or(1))?;
        }
        some("dma.frames", self.dma.frames)?;
        for (field, limit) in [
            ("dma.send_limit_bytes", self.dma.send_limit_bytes),
            ("dma.receive_limit_bytes", self.dma.receive_limit_bytes),
        ] {
            some(field, limit.unwrap_or(1))?;
        }
        let high = pause.high_percent;
        value(
            "pause.high_percent",
            high,
            (1..=100).contains(&high),
            "1 to 100",
        )?;
        value(
            "pause.low_percent",
            pause.low_percent,
            pause.low_percent < high,
            "less than pause.high_percent",
        )?;
        for (field, rule) in [
            ("send_interrupts.frames", &self.send_interrupts),
            ("receive_interrupts.frames", &self.receive_interrupts),
        ] {
            some(field, rule.frames.unwrap_or(1))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_profiles_are_valid() {
        assert_eq!(
            NicProfile::names().filter_map(NicProfile::shipped).count(),
            9
        );
        assert_eq!(
            HostProfile::names()
                .filter_map(HostProfile::shipped)
                .count(),
            3
        );
        assert_eq!(NicProfile::ideal().validate(), Ok(()));
        assert!(NicProfile::shipped("nic-ideal").is_none());
    }

    #[test]
    fn invalid_values_are_named() {
        let refusal = |change: fn(&mut NicProfile)| {
            let mut nic = NicProfile::ideal();
            change(&mut nic);
            nic.validate()
                .expect_err("there is no such NIC")
                .to_string()
        };
        assert_eq!(
            refusal(|nic| nic.descriptors.send = 1),
            "descriptors.send = 1: expected 2 to 65536"
        );
        assert_eq!(
            refusal(|nic| nic.processor.engines = 3),
            "processor.engines = 3: expected 1 or 2"
        );
        assert_eq!(
            refusal(|nic| nic.pause.low_percent = 100),
            "pause.low_percent = 100: expected less than pause.high_percent"
        );
        assert_eq!(
            refusal(|nic| nic.memory.receive_bytes = 1_500),
            "memory.receive_bytes = 1500: expected at least 2048"
        );
        let text =
            include_str!("../../../../profiles/nics/nic-ace.toml").replace("engines", "engins");
        let malformed = NicProfile::parse(&text)
            .expect_err("it has no such field")
            .to_string();
        assert!(malformed.contains("engins"), "{malformed}");
        let host = include_str!("../../../../profiles/hosts/athlon-2000.toml")
            .replace("clock_mhz = 1667", "clock_mhz = 0");
        let refused = HostProfile::parse(&host)
            .expect_err("it stands still")
            .to_string();
        assert!(refused.contains("clock_mhz = 0"), "{refused}");
    }
}

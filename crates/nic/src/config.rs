//! Parameters of the firmware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In which order queued work is done (handoff-policies 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served over all queues.
    Fcfs,
    /// Received host packets and host packets to send before commands, commands before NIC packets.
    HostFirst,
}

/// What the NIC does to get out of overload (handoff-policies 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relief {
    /// Wait for connections to end.
    Passive,
    /// Ask the host to take the busiest connections back.
    Active,
}

/// What tells load control that the NIC has too much or too little to do (handoff-policies 3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "snake_case",
    deny_unknown_fields
)]
pub enum LoadMeasure {
    /// Qlen, the NIC packets that wait: Hiwat and Lowat are `high_water_packets` and `low_water_packets`.
    #[default]
    Queue,
    /// The share of its time that the NIC's processor works. Where nobody knows that, load control does nothing.
    Busy {
        /// Hiwat, per cent of the time.
        high_percent: u32,
        /// Lowat, per cent of the time.
        low_percent: u32,
    },
    /// The packets of hosts that it handles in a second, and the events of its own connections, about two for a packet that came for one,
    /// each with a weight.
    PacketRate {
        /// Hiwat, weighted packets a second.
        high_per_s: u32,
        /// Lowat, weighted packets a second.
        low_per_s: u32,
        /// Weight of a packet of a connection on the host.
        host_weight: u32,
        /// Weight of an event of a connection on the NIC.
        nic_weight: u32,
    },
}

/// Load control: Hiwat, Lowat and the step sizes; Qlen, Cnum and Soft_Limit are state, Hard_Limit is `Config::connections`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadControl {
    /// Whether it runs at all.
    pub enabled: bool,
    /// What it goes by.
    pub measure: LoadMeasure,
    /// What is not a queue is measured over so long at a time.
    #[schemars(range(min = 1))]
    pub measure_us: u32,
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

impl LoadControl {
    /// Lowat and Hiwat of what it goes by, each with its name.
    pub fn marks(&self) -> [(&'static str, u32); 2] {
        match self.measure {
            LoadMeasure::Queue => [
                ("low_water_packets", self.low_water_packets),
                ("high_water_packets", self.high_water_packets),
            ],
            LoadMeasure::Busy {
                low_percent,
                high_percent,
            } => [
                ("measure.low_percent", low_percent),
                ("measure.high_percent", high_percent),
            ],
            LoadMeasure::PacketRate {
                low_per_s,
                high_per_s,
                ..
            } => [
                ("measure.low_per_s", low_per_s),
                ("measure.high_per_s", high_per_s),
            ],
        }
    }
}

impl Default for LoadControl {
    fn default() -> Self {
        Self {
            enabled: false,
            measure: LoadMeasure::Queue,
            measure_us: 2_000,
            high_water_packets: 1024,
            low_water_packets: 256,
            decrease_percent: 10,
            increase_percent: 2,
            relief: Relief::Passive,
        }
    }
}

/// How cached data gets from the cache to the wire (data-caching 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transmit {
    /// The engine that sends gathers a packet from disjoint regions of on-board memory: nothing is copied.
    Gather,
    /// The NIC's processor copies cached data into the transmit buffer.
    Copy,
}

/// The data cache (data-caching 4.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// On-board memory set aside for it, KiB; 0: there is no cache.
    #[schemars(range(max = MOST_CACHE_KIB))]
    pub kib: u32,
    /// How cached data is sent.
    pub transmit: Transmit,
}

impl CacheConfig {
    /// Its size in bytes.
    pub fn bytes(&self) -> u32 {
        self.kib.saturating_mul(1024)
    }
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            kib: 0,
            transmit: Transmit::Gather,
        }
    }
}

/// A parameter that no firmware can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// What it was set to.
    pub value: u32,
    /// What it must be.
    pub expected: &'static str,
}

/// The largest cache, KiB: offsets in it are 32-bit numbers.
const MOST_CACHE_KIB: u32 = (1 << 22) - 1;

/// Parameters of the firmware. Times and rates belong to the machine around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Hard_Limit: the most connections the NIC holds; 0 turns handoff off.
    #[schemars(extend("x-unit" = "connections"))]
    pub hard_limit: u32,
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
    #[schemars(range(min = 1))]
    pub receive_queue_packets: u32,
    /// Received packets that may wait for lookup. Under FCFS, where lookup waits its turn, this is *the* receive queue.
    #[schemars(range(min = 1))]
    pub arrival_queue_packets: u32,
    /// Packets of a host that may wait to be sent, and as many of its commands that may wait to be carried out.
    #[schemars(range(min = 1))]
    pub descriptor_queue_entries: u32,
    /// Segments that the NIC's TCP sends in one piece of work, which nothing interrupts.
    #[schemars(range(min = 1))]
    pub transmit_burst_segments: u32,
    /// The data cache, a part of the on-board memory.
    pub cache: CacheConfig,
}

impl Config {
    /// Whether the data cache fits: connections need their memory, and packets need some too.
    ///
    /// # Errors
    /// Names the first field with which it does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let connections = u64::from(self.hard_limit) * u64::from(self.connection_bytes);
        let left = (u64::from(self.memory_kib) * 1024)
            .saturating_sub(connections + crate::memory::PACKETS_LEAST);
        let kib = self.cache.kib;
        if kib > MOST_CACHE_KIB || u64::from(kib) * 1024 > left && kib > 0 {
            return Err(ConfigError {
                field: "cache.kib",
                value: kib,
                expected: "no more than memory_kib less what connections take and 16 KiB for packets, and below 4 GiB",
            });
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hard_limit: 1024,
            scheduler: Scheduler::HostFirst,
            load_control: LoadControl::default(),
            memory_kib: 32 * 1024,
            connection_bytes: 2048,
            receive_queue_packets: 2048,
            arrival_queue_packets: 512,
            descriptor_queue_entries: 512,
            transmit_burst_segments: 1,
            cache: CacheConfig::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_larger_than_the_memory_is_an_error() {
        let with_cache = |kib| Config {
            hard_limit: 0,
            memory_kib: 1024,
            cache: CacheConfig {
                kib,
                ..CacheConfig::default()
            },
            ..Config::default()
        };
        assert_eq!(Config::default().validate(), Ok(()));
        assert_eq!(with_cache(1008).validate(), Ok(()));
        let error = with_cache(1009)
            .validate()
            .expect_err("nothing for packets");
        assert_eq!((error.field, error.value), ("cache.kib", 1009));
        assert!(
            error
                .to_string()
                .starts_with("cache.kib = 1009: expected no more than")
        );
        let crowded = Config {
            hard_limit: 512,
            connection_bytes: 1024,
            ..with_cache(600)
        };
        assert!(crowded.validate().is_err(), "connections need theirs");
    }
}

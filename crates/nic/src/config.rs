//! Parameters of the firmware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order in which queued work is done (handoff-policies 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served over all queues.
    Fcfs,
    /// Received host packets and host packets to send before commands, and commands before NIC packets.
    HostFirst,
}

/// How the NIC gets out of overload (handoff-policies 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relief {
    /// Wait for connections to end.
    Passive,
    /// Ask the host to take the busiest connections back.
    Active,
}

/// Measure by which load control finds that the NIC has too much or too little to do (handoff-policies 3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "snake_case",
    deny_unknown_fields
)]
pub enum LoadMeasure {
    /// Qlen, the number of waiting NIC packets. Hiwat and Lowat are `high_water_packets` and `low_water_packets`.
    #[default]
    Queue,
    /// Share of its time during which the NIC's processor works. Where this share is unknown, load control does nothing.
    Busy {
        /// Hiwat, per cent of the time.
        high_percent: u32,
        /// Lowat, per cent of the time.
        low_percent: u32,
    },
    /// Weighted number of events in a second: packets of hosts that the NIC handles, and events of its own connections, about two for each
    /// packet that arrives for one.
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

/// Load control: Hiwat, Lowat and the step sizes. Qlen, Cnum and Soft_Limit are state; Hard_Limit is `Config::hard_limit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadControl {
    /// Whether load control runs at all.
    pub enabled: bool,
    /// Measure that load control goes by.
    pub measure: LoadMeasure,
    /// Interval over which every measure but the queue is taken, microseconds.
    #[schemars(range(min = 1))]
    pub measure_us: u32,
    /// Hiwat, packets on the NIC receive queue.
    pub high_water_packets: u32,
    /// Lowat, packets on the NIC receive queue.
    pub low_water_packets: u32,
    /// Soft_Limit falls to Cnum minus this percentage of Cnum (at least one) on overload.
    pub decrease_percent: u32,
    /// Soft_Limit rises by this percentage of Hard_Limit (at least one) on underload.
    pub increase_percent: u32,
    /// What happens on overload: passive waits, active asks for relief.
    pub relief: Relief,
}

impl LoadControl {
    /// Returns Lowat and Hiwat of the configured measure, each with its name.
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
    /// The transmit engine gathers a packet from disjoint regions of on-board memory, without copies.
    Gather,
    /// The NIC's processor copies cached data into the transmit buffer.
    Copy,
}

/// The data cache (data-caching 4.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// On-board memory reserved for the cache, KiB; 0: there is no cache.
    #[schemars(range(max = MOST_CACHE_KIB))]
    pub kib: u32,
    /// How cached data is sent.
    pub transmit: Transmit,
}

impl CacheConfig {
    /// Returns the size of the cache in bytes.
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

/// A parameter with which the firmware cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// The rejected value.
    pub value: u32,
    /// The accepted values.
    pub expected: &'static str,
}

/// Size of the largest cache, KiB. Offsets in the cache are 32-bit numbers.
const MOST_CACHE_KIB: u32 = (1 << 22) - 1;

/// Parameters of the firmware. Times and rates belong to the machine around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Hard_Limit: maximum number of connections on the NIC; 0 turns handoff off.
    #[schemars(extend("x-unit" = "connections"))]
    pub hard_limit: u32,
    /// Order in which queued work is done.
    pub scheduler: Scheduler,
    /// Load control.
    pub load_control: LoadControl,
    /// On-board memory, KiB, for connection blocks and received packets. Connections leave an eighth of it, and at least 16 KiB, to
    /// packets.
    pub memory_kib: u32,
    /// Memory of one connection, bytes.
    pub connection_bytes: u32,
    /// Received packets that may wait after lookup, in each of the two queues.
    #[schemars(range(min = 1))]
    pub receive_queue_packets: u32,
    /// Received packets that may wait for lookup. Under FCFS, where lookup waits too, this is *the* receive queue.
    #[schemars(range(min = 1))]
    pub arrival_queue_packets: u32,
    /// Packets of a host that may wait to be sent. As many of its commands may wait to be carried out.
    #[schemars(range(min = 1))]
    pub descriptor_queue_entries: u32,
    /// Segments that the NIC's TCP sends in one piece of work, which nothing interrupts.
    #[schemars(range(min = 1))]
    pub transmit_burst_segments: u32,
    /// The data cache, a part of the on-board memory.
    pub cache: CacheConfig,
}

impl Config {
    /// Checks that the data cache fits into memory, along with the connections and the minimum for packets.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let connections = u64::from(self.hard_limit) * u64::from(self.connection_bytes);
        let left = (u64::from(self.memory_kib) * 1024)
            .saturating_sub(connections + crate::memory::PACKETS_LEAST);
        let kib = self.cache.kib;
        if kib > MOST_CACHE_KIB || u64::from(kib) * 1024 > left && kib > 0 {
            return Err(ConfigError {
                field: "cache.kib",
                value: kib,
                expected: "at most memory_kib minus the memory of connections and 16 KiB for packets, and less than 4 GiB",
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
                .starts_with("cache.kib = 1009: expected at most")
        );
        let crowded = Config {
            hard_limit: 512,
            connection_bytes: 1024,
            ..with_cache(600)
        };
        assert!(crowded.validate().is_err(), "connections need theirs");
    }
}

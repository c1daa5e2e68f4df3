//! Parameters of the kernel.

use crate::files::FileCacheConfig;
use baton_host::AffinityConfig;
use baton_host::NicCacheConfig;
use baton_host::SelectionConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the kernel. Socket-buffer sizes belong to TCP ([`baton_tcp::Config`]): both owners of a connection share them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Maximum number of connections that wait for the application to accept them, and, separately, of connections in the handshake.
    #[schemars(range(min = 1), extend("x-unit" = "connections"))]
    pub backlog: u32,
    /// Maximum number of mbufs (256-byte buffers) that the kernel allocates.
    #[schemars(range(min = LEAST_BUFFERS))]
    pub mbufs: u32,
    /// Maximum number of clusters (2 KiB buffers) that the kernel allocates.
    #[schemars(range(min = LEAST_BUFFERS))]
    pub clusters: u32,
    /// Number of buckets of the connection hash table.
    #[schemars(range(min = 1, max = MOST_HASH_BUCKETS))]
    pub hash_buckets: u32,
    /// Whether the blocks of connections on NICs stay in the host's hash chains, since the host remains in control of port numbers. They
    /// also stay while a connection is in TIME-WAIT on the NIC.
    pub keep_blocks: bool,
    /// Entries of the ring from NIC to host, each with a buffer ready for one packet.
    #[schemars(range(min = 1))]
    pub receive_ring_entries: u32,
    /// Entries of the ring from host to NIC.
    #[schemars(range(min = 1))]
    pub transmit_ring_entries: u32,
    /// Which connections to hand off.
    pub selection: SelectionConfig,
    /// The file cache of main memory.
    pub file_cache: FileCacheConfig,
    /// How the NICs' data caches are used.
    pub nic_cache: NicCacheConfig,
    /// Which NIC answers a connection of the host's stack.
    pub affinity: AffinityConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backlog: 1024,
            mbufs: 1 << 20,
            clusters: 1 << 19,
            hash_buckets: 4096,
            keep_blocks: false,
            receive_ring_entries: 512,
            transmit_ring_entries: 512,
            selection: SelectionConfig::Fcfs,
            file_cache: FileCacheConfig::default(),
            nic_cache: NicCacheConfig::default(),
            affinity: AffinityConfig::Arrival,
        }
    }
}

/// A parameter value with which no kernel can work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// Value of the field.
    pub value: u32,
    /// Constraint that the value violates.
    pub expected: Expected,
}

/// Constraint on a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Expected {
    /// At least this value.
    #[error("at least {0}")]
    AtLeast(u32),
    /// Zero, or at least this value.
    #[error("0 or at least {0}")]
    ZeroOrAtLeast(u32),
    /// At least this value, which is the number of buffers on the receive ring plus a minimum.
    #[error("at least {0}, which is receive_ring_entries plus {LEAST_BUFFERS}")]
    Buffers(u32),
    /// A range that includes both ends.
    #[error("{0} to {1}")]
    Range(u32, u32),
    /// A power of two that is at least this value.
    #[error("a power of two of at least {0}")]
    PowerOfTwo(u32),
    /// A constraint described in words.
    #[error("{0}")]
    Words(&'static str),
}

/// Minimum number of buffers that a kernel needs in addition to those on the receive ring.
const LEAST_BUFFERS: u32 = 64;

/// Maximum number of hash buckets. They are allocated in advance, so a typing error must not request all memory.
const MOST_HASH_BUCKETS: u32 = 1 << 24;

impl Config {
    /// Checks that a kernel can work with these parameters.
    ///
    /// # Errors
    /// Returns the first field whose value is invalid.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let buffers = self.receive_ring_entries.saturating_add(LEAST_BUFFERS);
        let fields = [
            ("backlog", self.backlog, 1),
            ("receive_ring_entries", self.receive_ring_entries, 1),
            ("transmit_ring_entries", self.transmit_ring_entries, 1),
            ("mbufs", self.mbufs, buffers),
            ("clusters", self.clusters, buffers),
        ];
        let wrong = fields.into_iter().find(|&(_, value, least)| value < least);
        if let Some((field, value, least)) = wrong {
            return Err(ConfigError {
                field,
                value,
                expected: match least {
                    1 => Expected::AtLeast(1),
                    _ => Expected::Buffers(least),
                },
            });
        }
        let buckets = self.hash_buckets;
        if !(1..=MOST_HASH_BUCKETS).contains(&buckets) {
            return Err(ConfigError {
                field: "hash_buckets",
                value: buckets,
                expected: Expected::Range(1, MOST_HASH_BUCKETS),
            });
        }
        self.validate_caches()
    }

    fn validate_caches(&self) -> Result<(), ConfigError> {
        let error = |field, value, expected| {
            Err(ConfigError {
                field,
                value,
                expected,
            })
        };
        let (files, nic) = (&self.file_cache, &self.nic_cache);
        if (1..FileCacheConfig::LEAST_KIB).contains(&files.kib) {
            let expected = Expected::ZeroOrAtLeast(FileCacheConfig::LEAST_KIB);
            return error("file_cache.kib", files.kib, expected);
        }
        if files.read_pages == 0 {
            return error("file_cache.read_pages", 0, Expected::AtLeast(1));
        }
        if files.reads == 0 {
            return error("file_cache.reads", 0, Expected::AtLeast(1));
        }
        let least = baton_bus::descriptor::CACHE_UNIT_BYTES;
        if !nic.block_bytes.is_power_of_two() || nic.block_bytes < least {
            let expected = Expected::PowerOfTwo(least);
            return error("nic_cache.block_bytes", nic.block_bytes, expected);
        }
        if let Err(wrong) = nic.admission.validate() {
            let expected = Expected::Words(wrong.expected);
            return error("nic_cache.admission", wrong.found, expected);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_impossible_values_are_named() {
        assert_eq!(Config::default().validate(), Ok(()));
        let config = Config {
            mbufs: 100,
            ..Config::default()
        };
        let error = config.validate().expect_err("fewer than the ring takes");
        assert_eq!(
            error.to_string(),
            "mbufs = 100: expected at least 576, which is receive_ring_entries plus 64"
        );
    }

    #[test]
    fn blocks_are_powers_of_two() {
        for block_bytes in [0, 256, 3000, 6144] {
            let config = Config {
                nic_cache: NicCacheConfig {
                    block_bytes,
                    ..NicCacheConfig::default()
                },
                ..Config::default()
            };
            let error = config.validate().expect_err("no size for a block");
            let expected = "a power of two of at least 512";
            assert_eq!(
                error.to_string(),
                format!("nic_cache.block_bytes = {block_bytes}: expected {expected}")
            );
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = toml::from_str::<Config>("backlock = 5").expect_err("no such key");
        assert!(
            error.to_string().contains("unknown field `backlock`"),
            "{error}"
        );
        let config: Config =
            toml::from_str("selection = { policy = \"never\" }").expect("a configuration");
        assert_eq!(config.selection, SelectionConfig::Never);
    }
}

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

/// A parameter that no kernel can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected at least {least}")]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// What it was set to.
    pub value: u32,
    /// What it must be at least.
    pub least: u32,
}

/// Buffers that a kernel needs beside those on the receive ring, to get anywhere at all.
const LEAST_BUFFERS: u32 = 64;

impl Config {
    /// Whether a kernel can work with these parameters.
    ///
    /// # Errors
    /// Names the first field with which it cannot.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let buffers = self.receive_ring_entries.saturating_add(LEAST_BUFFERS);
        let fields = [
            ("backlog", self.backlog, 1),
            ("hash_buckets", self.hash_buckets, 1),
            ("receive_ring_entries", self.receive_ring_entries, 1),
            ("transmit_ring_entries", self.transmit_ring_entries, 1),
            ("transmit_queue_entries", self.transmit_queue_entries, 1),
            ("mbufs", self.mbufs, buffers),
            ("clusters", self.clusters, buffers),
            ("post_receive_bytes", self.post_receive_bytes, 1),
        ];
        let wrong = fields.into_iter().find(|&(_, value, least)| value < least);
        wrong.map_or(Ok(()), |(field, value, least)| {
            Err(ConfigError {
                field,
                value,
                least,
            })
        })
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
        assert_eq!(error.to_string(), "mbufs = 100: expected at least 576");
        let config = Config {
            post_receive_bytes: 0,
            ..Config::default()
        };
        assert_eq!(
            config.validate().map_err(|error| error.field),
            Err("post_receive_bytes")
        );
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

//! Parameters of the host's half.

use crate::NicCacheConfig;
use baton_bus::descriptor::CACHE_UNIT_BYTES;
use baton_bus::descriptor::{Descriptor, INLINE_HEAD_BYTES, MOST_INLINE_BYTES};
use baton_bus::{Batching, BatchingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of an [`OsLayer`](super::OsLayer).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OsLayerConfig {
    /// When requests are transferred.
    pub batching: Batching,
    /// Requests that may wait to be transferred, descriptors (batching 3.3: 128).
    #[schemars(range(min = 1), extend("x-unit" = "descriptors"))]
    pub ring_depth: u32,
    /// Maximum time that a cork holds data back, microseconds (batching 3.1: 1 ms).
    pub cork_timer_us: u32,
    /// Maximum number of buffers posted for one connection: one at first, more when they come back full. Buffers with unread data are included.
    #[schemars(range(min = 1))]
    pub receive_buffers: u32,
    /// Maximum length of data that is sent inside descriptors, bytes; 0 sends no data inside them.
    #[schemars(range(max = MOST_INLINE_BYTES), extend("x-unit" = "bytes"))]
    pub most_inline: u32,
    /// Connections that one ACCEPT waits for.
    #[schemars(range(min = 1))]
    pub bulk_accept: u16,
    /// Maximum time that the first connection of a bulk accept waits for the others, microseconds; 0: no limit.
    pub accept_timeout_us: u32,
    /// ACCEPTs that wait at one listener.
    #[schemars(range(min = 1))]
    pub accepts_posted: u32,
    /// Sends of one connection that may wait to be fetched.
    #[schemars(range(min = 1))]
    pub most_sends: u32,
    /// Buffers posted for packets of one packet socket.
    pub packet_buffers: u32,
    /// SENDs of one packet socket (packets or parts of packets) that may wait to be fetched; absent: as many as `packet_buffers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub packet_sends: Option<u32>,
    /// Maximum number of sockets, including those reserved for future connections.
    #[schemars(range(min = 2))]
    pub most_sockets: u32,
    /// Whether the adapter reports data that arrives while no buffer is posted
    /// ([`Outcome::Unread`](baton_bus::descriptor::Outcome)). If so, connections need no buffer while they are idle, and there may be more
    /// of them than buffers. Not read from files: it follows from the adapter.
    #[serde(skip)]
    pub reports_unread: bool,
    /// Whether an application that has sent everything may close one direction and wait for the peer. If not, it closes both directions
    /// together, which saves two crossings for each connection.
    pub half_close: bool,
    /// How the host uses the adapter's data cache. Not read from files: a simulated host takes it from the parameters of its kernel. Unless coherence
    /// is lazy, the code that changes a file must [report](super::Calls::file_changed) the change.
    #[serde(skip)]
    pub nic_cache: NicCacheConfig,
}

impl Default for OsLayerConfig {
    fn default() -> Self {
        Self {
            batching: Batching::default(),
            ring_depth: 128,
            cork_timer_us: 1_000,
            receive_buffers: 8,
            most_inline: 0,
            bulk_accept: 1,
            accept_timeout_us: 1_000,
            accepts_posted: 1,
            most_sends: 32,
            packet_buffers: 256,
            packet_sends: None,
            most_sockets: 16_384,
            reports_unread: false,
            half_close: false,
            nic_cache: NicCacheConfig::default(),
        }
    }
}

/// Invalid parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OsLayerConfigError {
    /// The batching parameters are invalid.
    #[error("batching: {0}")]
    Batching(#[from] BatchingError),
    /// A parameter must not be zero.
    #[error("{0} = 0: expected 1 or more")]
    Zero(&'static str),
    /// More bytes than descriptors can carry.
    #[error("most_inline = {0}: expected 0 to {MOST_INLINE_BYTES}")]
    Inline(u32),
    /// An entry would be longer than the ring or a transfer.
    #[error(
        "most_inline = {most_inline}: a send takes {needed} descriptors, but the ring has only {room}"
    )]
    InlineAboveDepth {
        /// Configured number of bytes.
        most_inline: u32,
        /// Descriptors of one entry.
        needed: usize,
        /// Descriptors that fit.
        room: u32,
    },
    /// The parameter is not valid with the adapter's data cache.
    #[error("nic_cache.{field} = {found}: expected {expected}")]
    Cache {
        /// Name of the parameter.
        field: &'static str,
        /// Value of the parameter.
        found: String,
        /// The valid values.
        expected: String,
    },
    /// One bulk accept would need all permitted sockets, or more.
    #[error("bulk_accept = {bulk_accept}: expected fewer than most_sockets = {most_sockets}")]
    Bulk {
        /// Connections.
        bulk_accept: u16,
        /// Sockets.
        most_sockets: u32,
    },
}

impl OsLayerConfigError {
    /// Returns the parameter with its table, its value, and what was expected.
    pub fn parts(&self) -> (String, String, String) {
        let (field, found, expected) = match self {
            Self::Batching(error) => {
                let (field, value, expected) = error.parts();
                return (format!("batching.{field}"), value.to_string(), expected);
            }
            Self::Cache {
                field,
                found,
                expected,
            } => {
                return (
                    format!("nic_cache.{field}"),
                    found.clone(),
                    expected.clone(),
                );
            }
            Self::Zero(field) => (*field, 0, "1 or more".to_owned()),
            Self::Inline(bytes) => ("most_inline", *bytes, format!("0 to {MOST_INLINE_BYTES}")),
            Self::InlineAboveDepth {
                most_inline,
                needed,
                room,
            } => (
                "most_inline",
                *most_inline,
                format!(
                    "a value for which a send takes at most ring_depth = {room} descriptors; with this value it takes {needed}"
                ),
            ),
            Self::Bulk {
                bulk_accept,
                most_sockets,
            } => (
                "bulk_accept",
                u32::from(*bulk_accept),
                format!("fewer than most_sockets = {most_sockets}"),
            ),
        };
        (field.to_owned(), found.to_string(), expected)
    }
}

impl OsLayerConfig {
    /// Returns the number of SENDs (packets or parts of packets) of one packet socket that may wait to be fetched.
    pub fn packet_sends(&self) -> u32 {
        self.packet_sends.unwrap_or(self.packet_buffers)
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the invalid parameter, and what was expected.
    pub fn validate(&self) -> Result<(), OsLayerConfigError> {
        self.batching.validate(self.ring_depth, Descriptor::BYTES)?;
        for (name, value) in [
            ("ring_depth", self.ring_depth),
            ("receive_buffers", self.receive_buffers),
            ("bulk_accept", self.bulk_accept.into()),
            ("accepts_posted", self.accepts_posted),
            ("most_sends", self.most_sends),
            ("most_sockets", self.most_sockets),
            ("packet_sends", self.packet_sends.unwrap_or(1)),
        ] {
            if value == 0 {
                return Err(OsLayerConfigError::Zero(name));
            }
        }
        if self.most_inline as usize > MOST_INLINE_BYTES {
            return Err(OsLayerConfigError::Inline(self.most_inline));
        }
        let needed = self.longest_send();
        if needed > self.ring_depth as usize {
            return Err(OsLayerConfigError::InlineAboveDepth {
                most_inline: self.most_inline,
                needed,
                room: self.ring_depth,
            });
        }
        if self.nic_cache.enabled {
            self.validate_cache()?;
        }
        if u32::from(self.bulk_accept) >= self.most_sockets {
            return Err(OsLayerConfigError::Bulk {
                bulk_accept: self.bulk_accept,
                most_sockets: self.most_sockets,
            });
        }
        Ok(())
    }

    fn validate_cache(&self) -> Result<(), OsLayerConfigError> {
        let wrong = |field, found: String, expected: String| {
            Err(OsLayerConfigError::Cache {
                field,
                found,
                expected,
            })
        };
        let cache = &self.nic_cache;
        let (least, most) = (CACHE_UNIT_BYTES, self.batching.max_transfer_bytes);
        let (block, bounds) = (cache.block_bytes, least..=most);
        if !block.is_power_of_two() || !bounds.contains(&block) {
            let expected = format!("a power of two from {least} to max_transfer_bytes = {most}");
            return wrong("block_bytes", block.to_string(), expected);
        }
        if let Err(error) = cache.admission.validate() {
            return wrong("admission", error.found.to_string(), error.expected.into());
        }
        Ok(())
    }

    /// Returns the number of descriptors of the longest SEND.
    pub(super) fn longest_send(&self) -> usize {
        descriptors_of(self.most_inline)
    }

    /// Returns the maximum length in bytes of a piece of data that may go with a SYN, and the maximum number of pieces, at least one: what
    /// fits into one transfer together with the requests that open a connection, because the SYN does not wait for another transfer.
    pub(super) fn most_with_syn(&self) -> (usize, usize) {
        let depth = self.ring_depth.min(self.batching.max_descriptors) as usize;
        let room = INLINE_HEAD_BYTES + depth.saturating_sub(1) * Descriptor::BYTES as usize;
        let piece = room.min(MOST_INLINE_BYTES);
        let pieces = depth.saturating_sub(OPENING_REQUESTS) / descriptors_of(piece as u32);
        (piece, pieces.max(1))
    }
}

/// SOCKET, SETSOCKOPT and CONNECT.
const OPENING_REQUESTS: usize = 3;

/// Returns the number of descriptors of a SEND with this many bytes inside.
pub(super) fn descriptors_of(len: u32) -> usize {
    let beyond_head = (len as usize).saturating_sub(INLINE_HEAD_BYTES);
    1 + beyond_head.div_ceil(Descriptor::BYTES as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_parameters_are_refused_with_a_reason() {
        let usual = OsLayerConfig::default;
        assert_eq!(usual().validate(), Ok(()));
        let least = OsLayerConfig {
            ring_depth: 1,
            receive_buffers: 1,
            most_sends: 1,
            most_sockets: 2,
            most_inline: 16,
            ..usual()
        };
        assert_eq!(least.validate(), Ok(()));
        for (wrong, text) in [
            (
                OsLayerConfig {
                    most_sends: 0,
                    ..usual()
                },
                "most_sends = 0",
            ),
            (
                OsLayerConfig {
                    most_inline: 241,
                    ..usual()
                },
                "0 to 240",
            ),
            (
                OsLayerConfig {
                    most_inline: 17,
                    ..least.clone()
                },
                "2 descriptors",
            ),
            (
                OsLayerConfig {
                    bulk_accept: 2,
                    ..least.clone()
                },
                "fewer than",
            ),
            (
                OsLayerConfig {
                    ring_depth: 0,
                    ..usual()
                },
                "depth of the ring",
            ),
        ] {
            let error = wrong.validate().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}

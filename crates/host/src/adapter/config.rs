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
    /// The longest that a cork holds data back, microseconds (batching 3.1: 1 ms).
    pub cork_timer_us: u32,
    /// Buffers posted for one connection: one at first, more when they come back full, at most so many. What the application has not
    /// read counts among them.
    #[schemars(range(min = 1))]
    pub receive_buffers: u32,
    /// The longest data that is sent inside descriptors, bytes; 0 sends none so.
    #[schemars(range(max = MOST_INLINE_BYTES), extend("x-unit" = "bytes"))]
    pub most_inline: u32,
    /// Connections that one ACCEPT waits for.
    #[schemars(range(min = 1))]
    pub bulk_accept: u16,
    /// The longest that the first connection of a bulk accept waits for the others, microseconds; 0 is without end.
    pub accept_timeout_us: u32,
    /// ACCEPTs that wait on one listener.
    #[schemars(range(min = 1))]
    pub accepts_posted: u32,
    /// Sends of one connection that may wait to be fetched.
    #[schemars(range(min = 1))]
    pub most_sends: u32,
    /// Buffers posted for packets, and packets that may wait to be fetched, of one packet socket.
    pub packet_buffers: u32,
    /// Sockets, with those reserved for connections to come.
    #[schemars(range(min = 2))]
    pub most_sockets: u32,
    /// Whether an application that has said all may close one direction and wait for the peer. If not it closes both at once, which
    /// saves two crossings for each connection.
    pub half_close: bool,
    /// How the adapter's data cache is used. Not in files: a simulated host has it in [`crate::Config`]. Where coherence is not lazy whoever changes a file
    /// [says so](super::Calls::file_changed).
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
            most_sockets: 16_384,
            half_close: false,
            nic_cache: NicCacheConfig::default(),
        }
    }
}

/// Parameters that could not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OsLayerConfigError {
    /// The batching parameters cannot.
    #[error("batching: {0}")]
    Batching(#[from] BatchingError),
    /// A parameter is zero that must not be.
    #[error("{0} = 0: expected 1 or more")]
    Zero(&'static str),
    /// More than can be sent inside descriptors.
    #[error("most_inline = {0}: expected 0 to {MOST_INLINE_BYTES}")]
    Inline(u32),
    /// An entry would be longer than the ring or a transfer.
    #[error(
        "most_inline = {most_inline}: a send takes {needed} descriptors, but there is room for {room}"
    )]
    InlineAboveDepth {
        /// Bytes.
        most_inline: u32,
        /// Descriptors of one entry.
        needed: usize,
        /// Descriptors for which there is room.
        room: u32,
    },
    /// What the adapter's data cache cannot be used with.
    #[error("nic_cache.{field} = {found}: expected {expected}")]
    Cache {
        /// The parameter.
        field: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// More connections in one accept than there may be sockets.
    #[error("bulk_accept = {bulk_accept}: expected fewer than most_sockets = {most_sockets}")]
    Bulk {
        /// Connections.
        bulk_accept: u16,
        /// Sockets.
        most_sockets: u32,
    },
}

impl OsLayerConfigError {
    /// The parameter, with the table that it is in, what it is, and what was expected of it.
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
                    "sends of no more descriptors than ring_depth = {room}; such a one takes {needed}"
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
    /// Whether these parameters can work.
    ///
    /// # Errors
    /// Says which cannot, and what was expected.
    pub fn validate(&self) -> Result<(), OsLayerConfigError> {
        self.batching.validate(self.ring_depth, Descriptor::BYTES)?;
        for (name, value) in [
            ("ring_depth", self.ring_depth),
            ("receive_buffers", self.receive_buffers),
            ("bulk_accept", self.bulk_accept.into()),
            ("accepts_posted", self.accepts_posted),
            ("most_sends", self.most_sends),
            ("most_sockets", self.most_sockets),
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

    /// Descriptors of the longest SEND.
    pub(super) fn longest_send(&self) -> usize {
        descriptors_of(self.most_inline)
    }

    /// The longest piece of data that may go with a SYN, bytes, and how many pieces: what one transfer has room for beside the
    /// requests that open a connection, for the SYN does not wait for another. There is always one.
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

/// Descriptors of a SEND with so much data inside.
pub(super) fn descriptors_of(len: u32) -> usize {
    let beyond_head = (len as usize).saturating_sub(INLINE_HEAD_BYTES);
    1 + beyond_head.div_ceil(Descriptor::BYTES as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_by_name() {
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

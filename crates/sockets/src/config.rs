//! Parameters of the application's side of a link.

use baton_bus::Batching;
use baton_host::adapter::OsLayerConfig;
use baton_iolib::Geometry;
use serde::{Deserialize, Serialize};

/// Bytes of one transfer. With content of tens of kilobytes, the fixed cost of each transfer is noticeable; the 4 KiB of the batching paper
/// (section 3.1) are meant for a bus.
const BUFFER_BYTES: u32 = 16 * 1024;

/// The first 11,000 connections have at least one buffer posted each, the others have one while the adapter has data for them. The system
/// allocates memory only for buffers that were used.
const BUFFERS: u32 = 16 * 1024;

/// Maximum number of sockets of one application by default. Their memory is allocated as they are used.
pub const MOST_SOCKETS: u32 = 1 << 18;

/// Parameters of an application's side of a link.
///
/// ```
/// use baton_sockets::DriverConfig;
///
/// // Large transfers on few connections: more buffers for each.
/// let mut config = DriverConfig::default();
/// config.os.receive_buffers = 64;
/// config.os.most_sends = 128;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DriverConfig {
    /// Sockets: batching, corks, and limits.
    pub os: OsLayerConfig,
    /// Rings and buffers to request from the adapter. The number of sends is that of `os`.
    pub geometry: Geometry,
    /// Maximum time that a wait spins before it sleeps, in microseconds; 0 never spins.
    pub most_spin_us: u32,
    /// Pause after the first attempt to attach again after an adapter is gone, in milliseconds; it doubles with each attempt.
    pub first_retry_ms: u32,
    /// Maximum pause between such attempts, in milliseconds.
    pub longest_retry_ms: u32,
}

impl Default for DriverConfig {
    fn default() -> Self {
        Self {
            os: OsLayerConfig {
                batching: Batching {
                    max_transfer_bytes: BUFFER_BYTES,
                    ..Batching::default()
                },
                accepts_posted: 16,
                half_close: true,
                most_sockets: MOST_SOCKETS,
                ..OsLayerConfig::default()
            },
            geometry: Geometry {
                buffers: BUFFERS,
                buffer_bytes: BUFFER_BYTES,
                ..Geometry::default()
            },
            most_spin_us: 50,
            first_retry_ms: 10,
            longest_retry_ms: 500,
        }
    }
}

//! Parameters of an application's side.

use baton_bus::Batching;
use baton_host::adapter::OsLayerConfig;
use baton_iolib::Geometry;
use serde::{Deserialize, Serialize};

/// Bytes of one transfer. What there is to do for a transfer, whatever its length, shows in content of tens of kilobytes; the 4 KiB of
/// batching 3.1 are those of a bus.
const BUFFER_BYTES: u32 = 16 * 1024;

/// A connection has one posted at least, and three in four may be: enough for 12,000 connections. The system has memory for those that
/// were used only.
const BUFFERS: u32 = 16 * 1024;

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
    /// Sockets: batching, corks, how many of everything.
    pub os: OsLayerConfig,
    /// Rings and buffers that are asked of the adapter. As many sends as those of `os` are.
    pub geometry: Geometry,
    /// The longest that a wait spins before it sleeps, microseconds; 0 never spins.
    pub most_spin_us: u32,
    /// The pause after the first attempt to attach again to an adapter that is gone, milliseconds; it doubles with each attempt.
    pub first_retry_ms: u32,
    /// The longest such pause, milliseconds.
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

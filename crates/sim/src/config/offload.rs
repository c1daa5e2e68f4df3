//! Host and adapters: the side that establishes connections, and the link between the two sides. Either all of TCP is on the adapters (the
//! batching paper), or only the connections that are handed off.

use super::{Experiment, Invalid, one_to};
use baton_host::AffinityConfig;
use baton_host::adapter::OsLayerConfig;
use baton_nic::adapter::AdapterConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How host and adapters communicate, and how long they take to notice messages.
///
/// Each NIC is an adapter. A connection belongs to the adapter at whose address it arrived. That adapter also answers it, unless
/// `host.kernel.affinity` chooses another. The costs of their work are in [`host`](Experiment::host) and [`nic`](Experiment::nic).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadConfig {
    /// Where connections are established.
    pub established_by: EstablishedBy,
    /// The host's half.
    pub host: OffloadHostConfig,
    /// The adapters' half, unless a kind of NIC [overrides](super::NicKind::adapter) it.
    pub adapter: OffloadAdapterConfig,
    /// The link between them, in addition to the interconnect.
    pub link: LinkConfig,
}

/// Where connections are established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EstablishedBy {
    /// On the adapter, which has all of TCP.
    Adapter,
    /// In the host's own stack, which hands off the connections that `host.kernel.selection` chooses.
    #[default]
    Host,
}

/// The host's half.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadHostConfig {
    /// Batching, cork and everything else about descriptors.
    pub interface: OsLayerConfig,
    /// How the host wakes up.
    pub wake_up: WakeUpConfig,
    /// How much the host does in one piece of work. One item is the processing of one response or, if there is none, the application's
    /// reaction to one event. Only a sleeping host is interrupted.
    pub piece: Piece,
}

impl Default for OffloadHostConfig {
    fn default() -> Self {
        Self {
            interface: OsLayerConfig {
                ring_depth: RING_DEPTH,
                packet_buffers: RING_DEPTH / 2,
                most_sockets: 1 << 20,
                ..OsLayerConfig::default()
            },
            wake_up: WakeUpConfig {
                ns: 2_000,
                jitter_percent: 10,
            },
            piece: Piece::default(),
        }
    }
}

/// Depth of rings that never fill up.
const RING_DEPTH: u32 = 4096;

/// The adapter's half.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadAdapterConfig {
    /// Batching and everything else about descriptors.
    pub interface: AdapterConfig,
    /// How the adapter wakes up.
    pub wake_up: WakeUpConfig,
    /// How much the adapter does in one piece of work. If it is one item, the scheduler, queue lengths and burst of
    /// [`nic.firmware`](baton_nic::Config) apply.
    pub piece: Piece,
}

/// How much a side does in one piece of work. A piece is never interrupted, and its output leaves when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// All pending work, like a process that wakes up (the batching paper).
    All,
    /// One item, like firmware that takes it from a queue (handoff-policies 3.1).
    #[default]
    One,
}

impl Default for OffloadAdapterConfig {
    fn default() -> Self {
        Self {
            interface: AdapterConfig {
                ring_depth: RING_DEPTH,
                ..AdapterConfig::default()
            },
            // The firmware polls.
            wake_up: WakeUpConfig {
                ns: 0,
                jitter_percent: 0,
            },
            piece: Piece::default(),
        }
    }
}

/// Time that a sleeping host or adapter takes to react to new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WakeUpConfig {
    /// Time from the arrival of work until it is processed, nanoseconds.
    pub ns: u32,
    /// Maximum random deviation from `ns`, in either direction, evenly distributed, per cent.
    #[schemars(range(max = 100))]
    pub jitter_percent: u32,
}

/// The link between adapter and host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// Time until the receiving side sees a crossing, in addition to its time on the interconnect, nanoseconds.
    pub latency_ns: u32,
    /// Buffers in host memory, each of the size of the largest transfer.
    #[schemars(range(min = 1, max = MOST_BUFFERS))]
    pub buffers: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            latency_ns: 0,
            buffers: 8 * RING_DEPTH,
        }
    }
}

/// Maximum number of buffers, for which memory is allocated in advance.
const MOST_BUFFERS: u32 = 1 << 20;

/// Maximum size of IP and TCP headers with all options, bytes.
const MOST_HEADER_BYTES: u32 = 100;

/// Returns the length of the longest packet that crosses between the host's own stack and the wire, bytes.
pub(super) fn longest_packet(experiment: &Experiment) -> u32 {
    let (server, clients) = (experiment.tcp.mss, experiment.clients.tcp.mss);
    u32::from(server.max(clients)) + MOST_HEADER_BYTES
}

impl OffloadConfig {
    /// Checks the constraints that types cannot express.
    pub(super) fn validate(&self, experiment: &Experiment) -> Result<(), Invalid> {
        let kernel = &experiment.host.kernel;
        let on_adapters = self.established_by == EstablishedBy::Adapter;
        if on_adapters && kernel.affinity != AffinityConfig::Arrival {
            let path = "host.kernel.affinity";
            let expected =
                "arrival, because adapters establish connections and each answers what it receives";
            return Err(Invalid::new(path, kernel.affinity.name(), expected));
        }
        self.adapter.interface.validate().map_err(|error| {
            let (field, found, expected) = error.parts();
            Invalid::new(
                &format!("offload.adapter.interface.{field}"),
                found,
                &expected,
            )
        })?;
        self.host.interface.validate().map_err(|error| {
            let (field, found, expected) = error.parts();
            Invalid::new(&format!("offload.host.interface.{field}"), found, &expected)
        })?;
        if self.established_by == EstablishedBy::Host {
            let longest = longest_packet(experiment);
            for (side, batching) in [
                ("adapter", &self.adapter.interface.batching),
                ("host", &self.host.interface.batching),
            ] {
                if batching.max_transfer_bytes < longest {
                    let path = format!("offload.{side}.interface.batching.max_transfer_bytes");
                    let expected =
                        format!("at least {longest}, the longest packet with the larger tcp.mss");
                    return Err(Invalid::new(&path, batching.max_transfer_bytes, &expected));
                }
            }
        }
        self.validate_cache(experiment)?;
        one_to(MOST_BUFFERS, "offload.link.buffers", self.link.buffers)?;
        for (side, wake_up) in [
            ("adapter", self.adapter.wake_up),
            ("host", self.host.wake_up),
        ] {
            if wake_up.jitter_percent > 100 {
                let path = format!("offload.{side}.wake_up.jitter_percent");
                return Err(Invalid::new(&path, wake_up.jitter_percent, "at most 100"));
            }
        }
        Ok(())
    }

    /// Checks that blocks of the data cache fit into a transfer.
    fn validate_cache(&self, experiment: &Experiment) -> Result<(), Invalid> {
        let (host, adapter) = (&self.host.interface, &self.adapter.interface);
        let cache = experiment.nic_cache();
        let most = (host.batching.max_transfer_bytes).min(adapter.batching.max_transfer_bytes);
        if cache.enabled && cache.block_bytes > most {
            let path = "host.kernel.nic_cache.block_bytes";
            let expected = format!("at most {most}, the largest transfer");
            return Err(Invalid::new(path, cache.block_bytes, &expected));
        }
        Ok(())
    }
}

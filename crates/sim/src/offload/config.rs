//! A machine with full offload, and its load, as data.

use super::pages::PagesConfig;
use crate::config::{Invalid, of_interconnect, one_to, positive, validate_tcp};
use crate::hardware::WireConfig;
use baton_apps::symbolic::CONTENT_LIMIT;
use baton_apps::web;
use baton_bus::interconnect::InterconnectConfig;
use baton_host::offload::OsLayerConfig;
use baton_nic::offload::AdapterConfig;
use serde::{Deserialize, Serialize};

/// The most connections that are open at the same time.
pub(super) const MOST_CONNECTIONS: u32 = 1 << 17;

/// Everything a run depends on. Two runs with equal experiments give equal results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Experiment {
    /// What to call it.
    pub name: String,
    /// How long to run, and the seed.
    pub run: RunConfig,
    /// What the clients ask for.
    pub load: LoadConfig,
    /// TCP of the clients, who cost nothing.
    pub clients_tcp: baton_tcp::Config,
    /// The wire between adapter and clients, each direction.
    pub wire: WireConfig,
    /// TCP of the adapter.
    pub tcp: baton_tcp::Config,
    /// The adapter.
    pub adapter: AdapterSideConfig,
    /// What lies between adapter and host.
    pub link: LinkConfig,
    /// The host.
    pub host: HostSideConfig,
}

/// How long to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Responses before measurement starts.
    pub warmup_responses: u64,
    /// Responses that are measured.
    pub measured_responses: u64,
    /// Simulated seconds after which the run ends even if there were fewer responses.
    pub limit_s: u64,
    /// Call every `check()` after every event (slow; for tests).
    pub check: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            warmup_responses: 20,
            measured_responses: 200,
            limit_s: 600,
            check: false,
        }
    }
}

/// What the clients ask for, as httperf does: each request on a connection of its own, which the server closes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadConfig {
    /// Bytes of the file.
    pub file_bytes: u32,
    /// Connections at the same time: each is followed by the next, or, at a rate, at most so many.
    pub connections: u32,
    /// New connections in a second, at even intervals; 0: each as soon as the one before it is over.
    pub rate_per_s: u32,
    /// Between the first connections, microseconds.
    pub start_interval_us: u64,
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self {
            file_bytes: 1024,
            connections: 1,
            rate_per_s: 0,
            start_interval_us: 100,
        }
    }
}

/// What lies between adapter and host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// What a crossing takes besides its time on the interconnect, nanoseconds: until the other side can see it.
    pub latency_ns: u32,
    /// The interconnect.
    pub interconnect: InterconnectConfig,
    /// Buffers in host memory, each of the size of the largest transfer.
    pub buffers: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            latency_ns: 0,
            interconnect: InterconnectConfig::Ideal,
            buffers: 4096,
        }
    }
}

/// The adapter: its interface and what its work takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdapterSideConfig {
    /// Batching and everything else about descriptors.
    pub interface: AdapterConfig,
    /// What its work takes.
    pub costs: AdapterCosts,
}

/// What the adapter's work takes, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdapterCosts {
    /// From the arrival of something while it sleeps until it works.
    pub wake_up_ns: u32,
    /// How much shorter or longer that may be, evenly drawn, per cent.
    pub wake_up_jitter_percent: u32,
    /// A segment received or sent.
    pub segment_ns: u32,
    /// A descriptor put or got.
    pub descriptor_ns: u32,
    /// A transfer of descriptors begun.
    pub transfer_ns: u32,
    /// A DMA of data begun, and the same again when it is over.
    pub dma_ns: u32,
}

/// A small processor; *assumed*, see the profiles for others.
impl Default for AdapterCosts {
    fn default() -> Self {
        Self {
            wake_up_ns: 1_000,
            wake_up_jitter_percent: 10,
            segment_ns: 2_000,
            descriptor_ns: 200,
            transfer_ns: 500,
            dma_ns: 500,
        }
    }
}

/// The host: its interface, its application and what its work takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSideConfig {
    /// Batching, cork and everything else about descriptors.
    pub interface: OsLayerConfig,
    /// The web server.
    pub web: web::Config,
    /// In its place, an application that makes pages while it sends them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesConfig>,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// What its work takes.
    pub costs: HostCosts,
}

impl Default for HostSideConfig {
    fn default() -> Self {
        Self {
            interface: OsLayerConfig::default(),
            web: web::Config::default(),
            pages: None,
            backlog: 1024,
            costs: HostCosts::default(),
        }
    }
}

/// What the host's work takes, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostCosts {
    /// From an interrupt or signal while it sleeps until it works.
    pub wake_up_ns: u32,
    /// How much shorter or longer that may be, evenly drawn, per cent.
    pub wake_up_jitter_percent: u32,
    /// An event of the application: a connection accepted, a request answered.
    pub event_ns: u32,
    /// A descriptor put or got.
    pub descriptor_ns: u32,
    /// A transfer of descriptors begun.
    pub transfer_ns: u32,
    /// A kilobyte of data put into or taken out of a buffer.
    pub kilobyte_ns: u32,
}

/// A server of some years ago; *assumed*, see the profiles for others.
impl Default for HostCosts {
    fn default() -> Self {
        Self {
            wake_up_ns: 2_000,
            wake_up_jitter_percent: 10,
            event_ns: 5_000,
            descriptor_ns: 200,
            transfer_ns: 500,
            kilobyte_ns: 200,
        }
    }
}

impl Experiment {
    /// Checks what types cannot.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn validate(&self) -> Result<(), Invalid> {
        positive("run.measured_responses", self.run.measured_responses)?;
        positive("run.limit_s", self.run.limit_s)?;
        one_to(MOST_CONNECTIONS, "load.connections", self.load.connections)?;
        if u64::from(self.load.file_bytes) >= CONTENT_LIMIT {
            let expected = format!("less than {CONTENT_LIMIT}");
            return Err(Invalid::new(
                "load.file_bytes",
                self.load.file_bytes,
                &expected,
            ));
        }
        self.wire.validate().map_err(|e| e.within("wire"))?;
        validate_tcp("tcp", &self.tcp)?;
        validate_tcp("clients_tcp", &self.clients_tcp)?;
        self.link
            .interconnect
            .validate()
            .map_err(|error| of_interconnect(&error))?;
        one_to(1 << 20, "link.buffers", self.link.buffers)?;
        if let Some(pages) = &self.host.pages {
            positive("host.pages.piece_bytes", pages.piece_bytes.into())?;
        }
        for (path, jitter) in [
            ("adapter.costs", self.adapter.costs.wake_up_jitter_percent),
            ("host.costs", self.host.costs.wake_up_jitter_percent),
        ] {
            if jitter > 100 {
                let path = format!("{path}.wake_up_jitter_percent");
                return Err(Invalid::new(&path, jitter, "at most 100"));
            }
        }
        Ok(())
    }
}

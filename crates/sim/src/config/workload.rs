//! What the clients ask for, and who they are.

use super::{Invalid, one_to, positive};
use baton_apps::symbolic::{CONTENT_LIMIT, FILES};
use baton_workload::log::FormatSpec;
use baton_workload::{
    FixedSpec, GeneratorSpec, LoadSpec, OnDemandSpec, Order, RemoteFilesSpec, SpecWebSpec, Throttle,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the clients ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadConfig {
    /// Replay an access log.
    Log {
        /// The log; `-` is standard input.
        path: PathBuf,
        /// Format of the log, by name or spelled out; absent: the format that its first lines match.
        #[serde(default)]
        #[schemars(with = "Option<String>")]
        format: Option<FormatSpec>,
        /// Whether to replay the log even if more than half of its lines are skipped.
        #[serde(default)]
        allow_skipped: bool,
        /// Requests of one client that are less than this apart share a connection, seconds.
        #[serde(default = "fifteen")]
        #[schemars(range(min = 1))]
        persistent_s: u32,
        /// Requests of one connection that are less than this apart are pipelined, seconds; absent: never.
        #[serde(default)]
        pipeline_s: Option<u32>,
        /// Order in which the log's connections are replayed: `drawn` from the seed, or as in the `log`.
        #[serde(default)]
        order: Order,
    },
    /// Replay a synthetic log of a preset generator.
    Generated {
        /// Name of the preset, such as `demo`, `ibm` or `worldcup-lifetimes`.
        preset: String,
        /// Requests in the log; replay starts again at its end.
        #[serde(default = "two_hundred_thousand")]
        #[schemars(range(min = 1, max = MOST_REQUESTS))]
        requests: u32,
        /// Requests of one client that are less than this apart share a connection, seconds.
        #[serde(default = "fifteen")]
        #[schemars(range(min = 1))]
        persistent_s: u32,
        /// Requests of one connection that are less than this apart are pipelined, seconds; absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pipeline_s: Option<u32>,
    },
    /// Replay a synthetic log of a generator whose parameters are given.
    Generator {
        /// Parameters of the generator.
        spec: Box<GeneratorSpec>,
        /// Requests in the log; replay starts again at its end.
        #[serde(default = "two_hundred_thousand")]
        #[schemars(range(min = 1, max = MOST_REQUESTS))]
        requests: u32,
        /// Requests of one client that are less than this apart share a connection, seconds.
        #[serde(default = "fifteen")]
        #[schemars(range(min = 1))]
        persistent_s: u32,
        /// Requests of one connection that are less than this apart are pipelined, seconds; absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pipeline_s: Option<u32>,
    },
    /// SPECweb99-like load.
    Specweb(SpecWebSpec),
    /// Files of one size.
    Fixed(FixedSpec),
    /// Titles played at a steady rate.
    OnDemand(OnDemandSpec),
    /// Reads and writes of a remote file system.
    RemoteFiles(RemoteFilesSpec),
}

const fn fifteen() -> u32 {
    15
}

const fn two_hundred_thousand() -> u32 {
    200_000
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        Self::Generated {
            preset: "demo".to_owned(),
            requests: two_hundred_thousand(),
            persistent_s: fifteen(),
            pipeline_s: None,
        }
    }
}

impl WorkloadConfig {
    /// Returns the value of the key `kind`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Log { .. } => "log",
            Self::Generated { .. } => "generated",
            Self::Generator { .. } => "generator",
            Self::Specweb(_) => "specweb",
            Self::Fixed(_) => "fixed",
            Self::OnDemand(_) => "on-demand",
            Self::RemoteFiles(_) => "remote-files",
        }
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        match self {
            Self::Log { persistent_s, .. } => {
                positive("workload.persistent_s", u64::from(*persistent_s))
            }
            Self::Generated {
                requests,
                persistent_s,
                ..
            } => {
                positive("workload.persistent_s", u64::from(*persistent_s))?;
                one_to(MOST_REQUESTS, "workload.requests", *requests)
            }
            Self::Generator {
                requests,
                persistent_s,
                spec,
                ..
            } => {
                positive("workload.persistent_s", u64::from(*persistent_s))?;
                spec.check().map_err(|error| {
                    Invalid::new("workload.spec", error, "parameters of a possible log")
                })?;
                one_to(MOST_REQUESTS, "workload.requests", *requests)
            }
            Self::Specweb(spec) => {
                one_to(SpecWebSpec::MOST_CLIENTS, "workload.clients", spec.clients)?;
                percent("workload.dynamic_percent", spec.dynamic_percent)?;
                percent("workload.persistent_percent", spec.persistent_percent)?;
                spec.throttle.map_or(Ok(()), throttle)
            }
            Self::Fixed(spec) => fixed(spec),
            Self::OnDemand(spec) => spec.check().map_err(|error| {
                let path = format!("workload.{}", error.field);
                Invalid::new(&path, error.value, error.expected)
            }),
            Self::RemoteFiles(spec) => remote_files(spec),
        }
    }

    /// Returns whether the workload is a log, whose requests have times.
    pub fn is_log(&self) -> bool {
        matches!(
            self,
            Self::Log { .. } | Self::Generated { .. } | Self::Generator { .. }
        )
    }

    /// Checks that the workload's requests can arrive as `load` says.
    pub(super) fn validate_load(&self, load: &LoadSpec) -> Result<(), Invalid> {
        if let Self::Fixed(FixedSpec {
            connections_per_s: Some(rate),
            ..
        }) = self
            && *load != LoadSpec::default()
        {
            let expected = "either this key or [load]";
            return Err(Invalid::new("workload.connections_per_s", rate, expected));
        }
        load.check(self.is_log()).map_err(|error| {
            let path = format!("load.{}", error.field);
            Invalid::new(&path, error.value, error.expected)
        })
    }
}

/// Maximum number of requests, because all of them are kept in memory.
const MOST_REQUESTS: u32 = 100_000_000;

/// Maximum number of clients, because each has its own address in 10/8.
pub(crate) const MOST_CLIENTS: u32 = 1_000_000;

fn throttle(throttle: Throttle) -> Result<(), Invalid> {
    let Throttle {
        min_bps, max_bps, ..
    } = throttle;
    positive("workload.throttle.max_bps", max_bps)?;
    if min_bps > max_bps {
        let path = "workload.throttle.min_bps";
        return Err(Invalid::new(path, min_bps, "at most max_bps"));
    }
    Ok(())
}

fn fixed(spec: &FixedSpec) -> Result<(), Invalid> {
    one_to(FixedSpec::MOST_REQUESTS, "workload.requests", spec.requests)?;
    if let Some(rate) = spec.connections_per_s {
        positive("workload.connections_per_s", u64::from(rate))?;
    }
    if spec.bytes > FixedSpec::MOST_BYTES {
        let expected = format!("0 to {}", FixedSpec::MOST_BYTES);
        return Err(Invalid::new("workload.bytes", spec.bytes, &expected));
    }
    Ok(())
}

fn remote_files(spec: &RemoteFilesSpec) -> Result<(), Invalid> {
    for (most, path, value) in [
        (RemoteFilesSpec::MOST_RANGES, "workload.ranges", spec.ranges),
        (RemoteFilesSpec::MOST_BYTES, "workload.bytes", spec.bytes),
        (
            RemoteFilesSpec::MOST_OPERATIONS,
            "workload.operations",
            spec.operations,
        ),
    ] {
        one_to(most, path, value)?;
    }
    percent("workload.write_percent", spec.write_percent)
}

/// Symbolic names must be able to express all files and sizes that clients can request.
const _: () =
    assert!(FixedSpec::MOST_BYTES < CONTENT_LIMIT && RemoteFilesSpec::MOST_RANGES <= FILES);

fn percent(path: &str, value: u32) -> Result<(), Invalid> {
    if value > 100 {
        Err(Invalid::new(path, value, "0 to 100"))
    } else {
        Ok(())
    }
}

/// The clients, each with one connection at a time, at no cost. In an open loop, a connection that is due waits for an idle client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientsConfig {
    /// Number of clients, and so of concurrent connections.
    #[schemars(range(min = 1, max = MOST_CLIENTS))]
    pub connections: u32,
    /// Number of trace replayers, among which the log and the clients are split equally. NICs and replayers are assigned to the clients in
    /// turn, so each replayer uses one NIC if the number of replayers is a multiple of the number of NICs.
    #[schemars(range(min = 1))]
    pub replayers: u32,
    /// Time between the starts of two clients, microseconds.
    pub start_interval_us: u64,
    /// Time until a client reacts to an event, microseconds: its connection is open, the last byte of a response has arrived, or its
    /// connection has ended. Its TCP takes no time.
    pub latency_us: u64,
    /// Time between ticks of a client's clock, microseconds. A pause that limits the client's rate (`workload.throttle`) ends at the last
    /// tick before its exact end. 0: pauses are exact.
    pub tick_us: u64,
    /// Whether clients mark the last request of a connection (`Connection: close`, RFC 2616 14.10), so that the server closes it. Otherwise
    /// the client closes it, except for non-persistent connections of its workload.
    pub announce_last: bool,
    /// The clients' TCP.
    pub tcp: baton_tcp::Config,
}

impl Default for ClientsConfig {
    fn default() -> Self {
        Self {
            connections: 2048,
            replayers: 1,
            start_interval_us: 50,
            latency_us: 0,
            tick_us: 0,
            announce_last: false,
            tcp: baton_tcp::Config::default(),
        }
    }
}

impl ClientsConfig {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        one_to(MOST_CLIENTS, "clients.connections", self.connections)?;
        if !(1..=self.connections).contains(&self.replayers) {
            let expected = format!("1 to clients.connections = {}", self.connections);
            return Err(Invalid::new("clients.replayers", self.replayers, &expected));
        }
        Ok(())
    }
}

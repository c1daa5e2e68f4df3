//! Measurements of a run. All types here are serialised as they are; equal experiments give equal bytes.

mod limit;
mod long_run;
mod unmeasured;

pub use limit::Limit;
pub use long_run::{LongRun, NotSteady, ResponseTime};

use crate::config::Experiment;
use crate::run::Facts;
use baton_bus::interconnect::Usage;
use baton_bus::{ByCategory, Category, EntriesPerTransfer};
use baton_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format version of [`Results`]. It changes when a field is removed or gets another meaning.
pub const VERSION: u32 = 1;

/// Results of one run. Unless stated otherwise they cover only the measured part.
///
/// Quantities that were not measured have no number: means and percentiles are `None`, and rates over zero time are [`f64::NAN`]. Both are
/// `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Format version of this structure.
    pub version: u32,
    /// The complete experiment, including the seed.
    pub experiment: Experiment,
    /// Commit of the program, as given by the caller.
    pub commit: String,
    /// Facts about the workload that was replayed (requests, content, log file).
    pub workload: Facts,
    /// Simulated time at which measurement began, seconds.
    pub warmup_s: f64,
    /// Simulated length of the measured part, seconds.
    pub measured_s: f64,
    /// Frames at the server's NIC in the measured part, both directions.
    pub packets: u64,
    /// Why the run ended.
    pub ended: Ended,
    /// Estimates for the long run.
    pub long_run: LongRun,
    /// Share of the content received by clients that did not cross the bus to a NIC, per cent. Negative if content crossed more often than
    /// it arrived; `None` if no content arrived.
    pub content_kept_off_bus_percent: Option<f64>,
    /// Measurements of the clients.
    pub clients: ClientResults,
    /// Host cycles by layer and cause.
    pub host: HostResults,
    /// Measurements of the NIC; totals if there are several.
    pub nic: NicResults,
    /// Measurements of each NIC, if there are several or they cache data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<PortResults>,
    /// Measurements of the file cache of main memory; `None` if the cache has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_cache: Option<FileCacheResults>,
    /// Measurements of the disks; `None` if the file cache has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskResults>,
    /// Handoffs and their outcomes.
    pub handoff: HandoffResults,
    /// Crossings and bytes between host and NIC.
    pub bus: baton_bus::Accounting,
    /// Utilisation of the interconnect; `None` if it is ideal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interconnect: Option<InterconnectResults>,
    /// Descriptors per transfer between the host and its adapters.
    pub offload: OffloadResults,
    /// Time series over the whole run, including the warm-up.
    pub series: Vec<Sample>,
}

impl Results {
    /// Returns complete responses per second in the long run, or the measured rate if the run was too short for an estimate.
    pub fn request_rate(&self) -> Estimate {
        let counted = Estimate::of_one(self.clients.request_rate);
        self.long_run.request_rate.unwrap_or(counted)
    }

    /// Returns the content that clients receive in the long run, Mb/s, or the measured rate if the run was too short for an estimate.
    pub fn content_mbps(&self) -> Estimate {
        let counted = Estimate::of_one(self.clients.content_mbps);
        self.long_run.content_mbps.unwrap_or(counted)
    }

    /// Returns the mean response time, ms. In an open loop the time counts from when the request was due: the estimate for the long run if
    /// available, and `None` if more is offered than can be served. In a closed loop it counts from when the request was sent. Also `None`
    /// if there was no response.
    pub fn mean_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| Some(long.mean), |counted| counted.mean)
    }

    /// Returns the 99th percentile of the response time, ms, defined as for [`Self::mean_response_ms`]. `None` if there were too few
    /// responses.
    pub fn p99_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| long.p99, |counted| counted.p99)
    }

    /// Returns the median of the response time, ms, defined as for [`Self::p99_response_ms`].
    pub fn median_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| long.p50, |counted| counted.p50)
    }

    /// Returns the 99.9th percentile of the response time, ms, defined as for [`Self::p99_response_ms`].
    pub fn p999_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| long.p999, |counted| counted.p999)
    }

    fn response_ms(
        &self,
        long: impl Fn(&ResponseTime) -> Option<Estimate>,
        counted: impl Fn(&Distribution) -> Option<f64>,
    ) -> Option<Estimate> {
        if self.long_run.not_steady.contains(&NotSteady::Saturated) {
            return None;
        }
        let counted = || counted(self.waited_ms()).map(Estimate::of_one);
        let long = self.long_run.response_ms.as_ref().and_then(long);
        long.or_else(counted)
    }

    /// Returns measured response times: in an open loop from when requests were due, otherwise from when they were sent.
    pub fn waited_ms(&self) -> &Distribution {
        let open = self.clients.open_loop.as_ref();
        open.map_or(&self.clients.response_ms, |open| &open.response_ms)
    }

    /// Returns the number of DMA operations per response, or NaN if there was no response.
    pub fn crossings_per_response(&self) -> f64 {
        match self.clients.responses {
            0 => f64::NAN,
            responses => self.bus.crossings() as f64 / responses as f64,
        }
    }

    /// Returns the share of content kept off the bus in the long run, per cent, or the measured share if the run was too short for an
    /// estimate.
    pub fn content_kept_off_bus(&self) -> Option<Estimate> {
        let counted = self.content_kept_off_bus_percent.map(Estimate::of_one);
        self.long_run.content_kept_off_bus_percent.or(counted)
    }

    /// Reports whether clients received nothing in the measured part, so that the results say nothing about the server.
    pub fn measured_nothing(&self) -> bool {
        self.clients.responses == 0 && self.content_kept_off_bus_percent.is_none()
    }
}

/// Descriptors per transfer, over the host and all adapters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadResults {
    /// Descriptors in each of the host's transfers.
    pub host_transfers: EntriesPerTransfer,
    /// Descriptors in each of the adapter's transfers.
    pub adapter_transfers: EntriesPerTransfer,
}

baton_named::named! {
    /// Reason why a run ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Ended {
        /// All packets or responses were measured.
        Complete => "complete",
        /// `run.limit_s` was reached first.
        TimeLimit => "time_limit",
        /// No more events were pending.
        Quiet => "quiet",
    }
}

/// Measurements of the clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientResults {
    /// Completed responses.
    pub responses: u64,
    /// Completed responses per second of simulated time.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub request_rate: f64,
    /// Bytes of response bodies received per second, Mb/s.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub content_mbps: f64,
    /// Connections that completed.
    pub connections: u64,
    /// Connections that failed (reset, timed out), by reason.
    pub failed: BTreeMap<String, u64>,
    /// Time from sending a request to the last byte of its response. In an open loop this excludes the wait before sending, see
    /// [`OpenLoopResults`].
    pub response_ms: Distribution,
    /// The part of the response time until the first byte of the response.
    pub first_byte_ms: Distribution,
    /// The part of the response time from the first byte to the last.
    pub transfer_ms: Distribution,
    /// Segments that clients retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts at clients.
    pub timeouts: u64,
    /// Measurements of arriving requests; `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopResults>,
}

/// Requests of an open loop, which arrive independently of responses.
///
/// A request is due when its load says so. The client sends the request when it has a connection and all previous responses on that
/// connection have arrived. A server that stalls therefore holds requests back, and a measurement that starts at sending would hide most of
/// the stall ("coordinated omission").
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopResults {
    /// Requests per second of the connections that were due.
    pub offered_rate: f64,
    /// The number of these requests that will not be answered because their connections failed.
    pub lost: u64,
    /// Requests in progress at the end: the first request of a connection from when it is due, others from when they are sent.
    pub unanswered: u64,
    /// Time from when a request was due to the last byte of its response.
    pub response_ms: Distribution,
    /// The part of the response time until the request was sent.
    pub wait_ms: Distribution,
}

/// Summary of a distribution; the field's name gives the unit. Means of no values and percentiles of too few values (p99 of fewer than 100)
/// are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Distribution {
    pub count: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Cycles by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cycles {
    /// Executing instructions (level-1 hits included).
    pub execute: u64,
    /// Waiting for the level-2 cache.
    pub l2: u64,
    /// Waiting for memory.
    pub memory: u64,
    /// Lines fetched from memory. A count, not cycles: these fetches caused the stalls in `memory`.
    #[serde(default)]
    pub l2_misses: u64,
}

impl Cycles {
    /// Returns the sum of all cycles.
    pub const fn total(&self) -> u64 {
        self.execute + self.l2 + self.memory
    }
}

/// Host cycles by layer and cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResults {
    /// Share of idle cycles, per cent.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub idle_percent: f64,
    /// Share of all cycles spent in the network stack below the system-call layer, per cent.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub network_stack_percent: f64,
    /// Cycles by layer and cause, with the layers in order from the wire up.
    pub layers: BTreeMap<String, Cycles>,
    /// Idle cycles.
    pub idle_cycles: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Work of the network stack for packets of host connections.
    pub host_packets: PerPacket,
    /// Work of the network stack for packets of offloaded connections.
    pub nic_packets: PerPacket,
    /// Packets and events that the kernel dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Segments that the host's stack retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts of the host's stack.
    pub timeouts: u64,
}

/// Host work per packet of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerPacket {
    /// Packets of this kind at the NIC, both directions.
    pub packets: u64,
    /// Host cycles per packet, network stack only.
    pub cycles: Option<f64>,
    /// Host instructions per packet, network stack only.
    pub instructions: Option<f64>,
    /// Level-2 misses per packet, network stack only.
    pub l2_misses: Option<f64>,
}

/// Measurements of the NIC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NicResults {
    /// Share of time in which the NIC's processor was idle, per cent.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub idle_percent: f64,
    /// Instructions by task.
    pub tasks: BTreeMap<String, TaskResults>,
    /// Time that an outgoing host packet spends on the NIC.
    pub send_delay_us: Distribution,
    /// Time that a received host packet spends on the NIC.
    pub receive_delay_us: Distribution,
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Mean number of connections on the NIC, over the samples.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub connections_mean: f64,
    /// Segments that the NIC's stack retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts of the NIC's stack.
    pub timeouts: u64,
}

/// Measurements of one of several NICs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortResults {
    /// Name of the NIC's kind in the experiment, if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Bytes of response bodies received per second by the NIC's clients, Mb/s.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub content_mbps: f64,
    /// Measurements of the NIC.
    pub nic: NicResults,
    /// Measurements of the NIC's data cache; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<NicCacheResults>,
}

/// Measurements of a NIC's data cache, as the host's directory sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NicCacheResults {
    /// Number of blocks in the cache at the end, and the maximum number.
    pub blocks: (u32, u32),
    /// Parts of packets looked up.
    pub lookups: u64,
    /// Parts that were cached.
    pub hits: u64,
    /// Bytes of the cached parts.
    pub hit_bytes: u64,
    /// Blocks inserted into the cache because they were about to be sent.
    pub inserts: u64,
    /// Bytes of all inserts.
    pub inserted_bytes: u64,
    /// Blocks evicted to make space for others.
    pub evictions: u64,
    /// Blocks whose lookup found an old revision.
    pub stale: u64,
    /// Blocks removed immediately by a change of their file.
    pub invalidated: u64,
    /// Blocks inserted again because of a change of their file.
    pub updated: u64,
    /// Blocks removed because their page left main memory.
    pub excluded: u64,
    /// Blocks of transient files removed after their delivery.
    pub delivered: u64,
    /// Bytes of parts that bypassed the cache.
    pub bypassed_bytes: u64,
}

impl NicCacheResults {
    /// Returns the share of the looked-up parts that were cached, per cent, or NaN if no part was looked up.
    pub fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.lookups as f64
    }
}

/// Measurements of the file cache of main memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCacheResults {
    /// Pages that `sendfile` found in memory.
    pub hits: u64,
    /// Number of times `sendfile` needed a page that was not in memory.
    pub misses: u64,
    /// Pages read from the disks.
    pub pages_read: u64,
    /// Pages evicted to make space for others.
    pub evictions: u64,
}

/// Measurements of the disks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskResults {
    /// Share of the time in which each disk was busy, per cent.
    pub utilisation_percent: Vec<f64>,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Mean time of one read, without queueing.
    pub service_ms: Option<f64>,
}

/// One kind of firmware task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct TaskResults {
    pub count: u64,
    pub instructions: u64,
}

/// Handoffs and their outcomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffResults {
    /// Handoffs that the host requested.
    pub attempted: u64,
    /// Handoffs that the NIC accepted.
    pub accepted: u64,
    /// Connections taken back.
    pub restored: u64,
    /// Packets forwarded to the NIC because they arrived during a handoff.
    pub forwarded: u64,
    /// Connections not offloaded, by reason.
    pub not_offloaded: BTreeMap<String, u64>,
    /// Share of packets at the NIC that belonged to offloaded connections, per cent.
    #[serde(with = "unmeasured")]
    #[schemars(with = "Option<f64>")]
    pub offloaded_packets_percent: f64,
}

/// Utilisation of the interconnect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterconnectResults {
    /// Share of the time in which the busiest channel was occupied, per cent. A channel is a bus or one direction of a link.
    pub utilisation_percent: f64,
    /// Share of the channels' time that each category took, per cent; the sum is their mean utilisation.
    pub time_percent: ByCategory<f64>,
    /// Time and bytes by channel, device and category.
    pub usage: Usage,
}

impl InterconnectResults {
    /// Returns the share of a category in all traffic, in bus time, per cent.
    pub fn share_percent(&self, category: Category) -> f64 {
        let all = self.time_percent.total();
        if all > 0.0 {
            100.0 * self.time_percent.get(category) / all
        } else {
            0.0
        }
    }
}

impl From<Usage> for InterconnectResults {
    fn from(usage: Usage) -> Self {
        let shares = usage.shares();
        let percent = |shares: ByCategory<f64>| {
            Category::ALL
                .into_iter()
                .fold(ByCategory::default(), |percent, category| {
                    percent.with(category, 100.0 * shares.get(category))
                })
        };
        Self {
            utilisation_percent: 100.0 * usage.utilisation(),
            time_percent: percent(shares),
            usage,
        }
    }
}

/// One point of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Simulated time, microseconds.
    pub time_us: u64,
    /// Connections that belong to sockets of the server, on the host or on the NIC.
    pub open: u32,
    /// Connections on the NIC (Cnum).
    pub connections: u32,
    /// NIC packets waiting (Qlen).
    pub qlen: u32,
    /// Soft_Limit.
    pub soft_limit: u32,
    /// Responses completed since the start of the run.
    pub responses: u64,
    /// Frames lost at the NICs since the start of the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drops: u64,
    /// Requests in progress, defined as for [`OpenLoopResults::unanswered`]; 0 in a closed loop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

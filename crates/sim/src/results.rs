//! What a run measured. Everything here is serialised as it is; equal experiments give equal bytes.

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
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Results of one run: the measured part only, unless said otherwise.
///
/// Where nothing was measured there is no number: means and percentiles are none, rates over no time are not a number ([`f64::NAN`]).
/// Both are `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Format version of this structure.
    pub version: u32,
    /// The experiment, complete, seed included.
    pub experiment: Experiment,
    /// Commit of the program, as given by its caller.
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
    /// What it says about the long run.
    pub long_run: LongRun,
    /// Share of the content that clients received which did not cross the bus to a NIC, per cent; below 0 where content crossed
    /// more often than it arrived. None where none arrived.
    pub content_kept_off_bus_percent: Option<f64>,
    /// What clients saw.
    pub clients: ClientResults,
    /// Where host cycles went.
    pub host: HostResults,
    /// What the NIC did; all together where there are several.
    pub nic: NicResults,
    /// Each NIC, where there are several or they cache data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<PortResults>,
    /// What the file cache of main memory did; none where it has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_cache: Option<FileCacheResults>,
    /// What the disks did; none where the file cache has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskResults>,
    /// Handoffs and their fate.
    pub handoff: HandoffResults,
    /// Crossings and bytes between host and NIC.
    pub bus: baton_bus::Accounting,
    /// How the interconnect was used; none where it is ideal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interconnect: Option<InterconnectResults>,
    /// What crossed together between the host and its adapters.
    pub offload: OffloadResults,
    /// Time series over the whole run, warm-up included.
    pub series: Vec<Sample>,
}

impl Results {
    /// Complete responses a second, in the long run; of a run too short for that, as they were counted.
    pub fn request_rate(&self) -> Estimate {
        let counted = Estimate::of_one(self.clients.request_rate);
        self.long_run.request_rate.unwrap_or(counted)
    }

    /// Content that clients receive, in the long run, Mb/s; of a run too short for that, as it was counted.
    pub fn content_mbps(&self) -> Estimate {
        let counted = Estimate::of_one(self.clients.content_mbps);
        self.long_run.content_mbps.unwrap_or(counted)
    }

    /// Mean response time, ms: in an open loop since the request was due, in the long run if that is known, and none where more is
    /// offered than can be served; else since it was sent. None where there was no response.
    pub fn mean_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| Some(long.mean), |counted| counted.mean)
    }

    /// The 99th percentile of the response time, ms, as [`Self::mean_response_ms`]. None of too few responses.
    pub fn p99_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| long.p99, |counted| counted.p99)
    }

    /// The median of the response time, ms, as [`Self::p99_response_ms`].
    pub fn median_response_ms(&self) -> Option<Estimate> {
        self.response_ms(|long| long.p50, |counted| counted.p50)
    }

    /// The 99.9th percentile of the response time, ms, as [`Self::p99_response_ms`].
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

    /// Response times as they were counted: in an open loop since requests were due, else since they were sent.
    pub fn waited_ms(&self) -> &Distribution {
        let open = self.clients.open_loop.as_ref();
        open.map_or(&self.clients.response_ms, |open| &open.response_ms)
    }

    /// DMA operations for each response; no number where there was no response.
    pub fn crossings_per_response(&self) -> f64 {
        match self.clients.responses {
            0 => f64::NAN,
            responses => self.bus.crossings() as f64 / responses as f64,
        }
    }

    /// Share of content kept off the bus, in the long run, per cent; of a run too short for that, as it was counted.
    pub fn content_kept_off_bus(&self) -> Option<Estimate> {
        let counted = self.content_kept_off_bus_percent.map(Estimate::of_one);
        self.long_run.content_kept_off_bus_percent.or(counted)
    }

    /// Whether clients received nothing in the measured part, so that there is nothing to say about the server.
    pub fn measured_nothing(&self) -> bool {
        self.clients.responses == 0 && self.content_kept_off_bus_percent.is_none()
    }
}

/// Sockets on adapters: what crossed together, between the host and all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadResults {
    /// Descriptors in each of the host's transfers.
    pub host_transfers: EntriesPerTransfer,
    /// Descriptors in each of the adapter's transfers.
    pub adapter_transfers: EntriesPerTransfer,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All packets or responses were measured.
    Complete,
    /// `run.limit_s` came first.
    TimeLimit,
    /// Nothing more could happen.
    Quiet,
}

impl Ended {
    /// The name in tables and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::TimeLimit => "time_limit",
            Self::Quiet => "quiet",
        }
    }
}

/// What clients saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientResults {
    /// Completed responses.
    pub responses: u64,
    /// Completed responses per second of simulated time.
    #[serde(with = "unmeasured")]
    pub request_rate: f64,
    /// Bytes of response bodies received per second, Mb/s.
    #[serde(with = "unmeasured")]
    pub content_mbps: f64,
    /// Connections that completed.
    pub connections: u64,
    /// Connections that failed (reset, timed out), by reason.
    pub failed: BTreeMap<String, u64>,
    /// Time from sending a request to the last byte of its response. What an open loop waits before it sends is not in it: see
    /// [`OpenLoopResults`].
    pub response_ms: Distribution,
    /// Of that, until the first byte of the response.
    pub first_byte_ms: Distribution,
    /// And from there to its last byte.
    pub transfer_ms: Distribution,
    /// Segments that clients sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts at clients.
    pub timeouts: u64,
    /// What came by itself; none in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopResults>,
}

/// What came by itself, in an open loop.
///
/// A request is due when its load says so. It is sent when its client has a connection, and the responses before it on that connection have
/// come: a server that stalls holds requests back, and would hide most of its stall from whoever counted from sending only ("coordinated
/// omission").
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopResults {
    /// Requests per second of the connections that were due.
    pub offered_rate: f64,
    /// Of these, requests that will not be answered, because their connections failed.
    pub lost: u64,
    /// Requests under way at the end: the first of a connection from when it is due, others from when they are sent.
    pub unanswered: u64,
    /// Time from when a request was due to the last byte of its response.
    pub response_ms: Distribution,
    /// Of that, until it was sent.
    pub wait_ms: Distribution,
}

/// A distribution in brief; the unit is in the field's name. Means of nothing and percentiles of too few values (p99 of fewer than 100) are
/// none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycles {
    /// Executing instructions (level-1 hits included).
    pub execute: u64,
    /// Waiting for the level-2 cache.
    pub l2: u64,
    /// Waiting for memory.
    pub memory: u64,
    /// Lines that came from memory: no cycles, but what `memory` was spent on.
    #[serde(default)]
    pub l2_misses: u64,
}

impl Cycles {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.execute + self.l2 + self.memory
    }
}

/// Where host cycles went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostResults {
    /// Share of cycles with nothing to do, per cent.
    #[serde(with = "unmeasured")]
    pub idle_percent: f64,
    /// Share of all cycles spent in the network stack below the system-call layer, per cent.
    #[serde(with = "unmeasured")]
    pub network_stack_percent: f64,
    /// Cycles by layer and cause, layers from the wire up.
    pub layers: BTreeMap<String, Cycles>,
    /// Cycles with nothing to do.
    pub idle_cycles: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Work of the network stack for packets of host connections.
    pub host_packets: PerPacket,
    /// Work of the network stack for packets of offloaded connections.
    pub nic_packets: PerPacket,
    /// Packets and events that the kernel dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Segments that the host's stack sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts of the host's stack.
    pub timeouts: u64,
}

/// Host work per packet of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// What the NIC did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NicResults {
    /// Share of time its processor had nothing to do, per cent.
    #[serde(with = "unmeasured")]
    pub idle_percent: f64,
    /// Instructions by task.
    pub tasks: BTreeMap<String, TaskResults>,
    /// Time a host packet to be sent spends on the NIC.
    pub send_delay_us: Distribution,
    /// Time a received host packet spends on the NIC.
    pub receive_delay_us: Distribution,
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Connections on the NIC, mean over the samples.
    #[serde(with = "unmeasured")]
    pub connections_mean: f64,
    /// Segments that the NIC's stack sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts of the NIC's stack.
    pub timeouts: u64,
}

/// One NIC of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortResults {
    /// What the experiment calls its kind, if anything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Bytes of response bodies that its clients received per second, Mb/s.
    #[serde(with = "unmeasured")]
    pub content_mbps: f64,
    /// What it did.
    pub nic: NicResults,
    /// What its data cache did; none where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<NicCacheResults>,
}

/// What the data cache of a NIC did, as the host's directory sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NicCacheResults {
    /// Blocks it holds at the end, and how many it may hold.
    pub blocks: (u32, u32),
    /// Parts of packets looked up.
    pub lookups: u64,
    /// Parts that were cached.
    pub hits: u64,
    /// Bytes they had.
    pub hit_bytes: u64,
    /// Blocks put into the cache because they were to be sent.
    pub inserts: u64,
    /// Bytes of all inserts.
    pub inserted_bytes: u64,
    /// Blocks that made room for others.
    pub evictions: u64,
    /// Blocks found to be of an old revision when looked up.
    pub stale: u64,
    /// Blocks that a change of their file removed at once.
    pub invalidated: u64,
    /// Blocks that a change of their file put into the cache again.
    pub updated: u64,
    /// Blocks removed because their page left main memory.
    pub excluded: u64,
    /// Blocks of transient files removed after their delivery.
    pub delivered: u64,
    /// Bytes of parts that bypassed the cache.
    pub bypassed_bytes: u64,
}

impl NicCacheResults {
    /// Share of the looked-up parts that were cached, per cent; no number where none was looked up.
    pub fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.lookups as f64
    }
}

/// What the file cache of main memory did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCacheResults {
    /// Pages that `sendfile` found in memory.
    pub hits: u64,
    /// Times `sendfile` met a page that was not in memory.
    pub misses: u64,
    /// Pages read from the disks.
    pub pages_read: u64,
    /// Pages that made room for others.
    pub evictions: u64,
}

/// What the disks did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskResults {
    /// Share of the time in which each disk worked, per cent.
    pub utilisation_percent: Vec<f64>,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Mean time for one read, queueing not included.
    pub service_ms: Option<f64>,
}

/// One kind of firmware task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TaskResults {
    pub count: u64,
    pub instructions: u64,
}

/// Handoffs and their fate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandoffResults {
    /// Handoffs that the host asked for.
    pub attempted: u64,
    /// Handoffs that the NIC accepted.
    pub accepted: u64,
    /// Connections taken back.
    pub restored: u64,
    /// Packets forwarded to the NIC because they crossed a handoff.
    pub forwarded: u64,
    /// Connections not offloaded, by reason.
    pub not_offloaded: BTreeMap<String, u64>,
    /// Share of packets at the NIC that belonged to offloaded connections, per cent.
    #[serde(with = "unmeasured")]
    pub offloaded_packets_percent: f64,
}

/// How the interconnect was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterconnectResults {
    /// Share of the time in which the channel that was used most was not free, per cent: a bus, or a direction of a link.
    pub utilisation_percent: f64,
    /// Share of the channels' time that each category took, per cent; the sum is their mean utilisation.
    pub time_percent: ByCategory<f64>,
    /// Time and bytes by channel, device and category.
    pub usage: Usage,
}

impl InterconnectResults {
    /// Share that a category has in all traffic, in bus time, per cent.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Simulated time, microseconds.
    pub time_us: u64,
    /// Connections that the server's sockets have, on the host or on the NIC.
    pub open: u32,
    /// Connections on the NIC (Cnum).
    pub connections: u32,
    /// NIC packets waiting (Qlen).
    pub qlen: u32,
    /// Soft_Limit.
    pub soft_limit: u32,
    /// Responses completed since the start.
    pub responses: u64,
    /// Requests under way, as [`OpenLoopResults::unanswered`]; 0 in a closed loop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

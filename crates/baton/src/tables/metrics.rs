//! Columns of the table of runs, chosen by the topics of the runs.

use baton_report as report;
use baton_sim::config::{ApplicationConfig, EstablishedBy, WorkloadConfig};
use baton_sim::results::{Distribution, Limit, NicResults, Results};
use baton_stats::Estimate;

/// Topic of an experiment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topic {
    /// Every experiment.
    Any,
    /// Data caches, or content that they could hold.
    Caches,
    /// An interconnect that is not ideal.
    Interconnect,
    /// Sockets on adapters, whose descriptors can be batched.
    Batching,
    /// Connections that can be handed off.
    Handoff,
    /// Requests whose arrival does not depend on the speed of the server.
    Load,
}

impl Topic {
    fn is_of(self, run: &Results) -> bool {
        let experiment = &run.experiment;
        match self {
            Self::Any => true,
            Self::Caches => {
                run.nics.iter().any(|port| port.cache.is_some())
                    || run.file_cache.is_some()
                    || matches!(experiment.application, ApplicationConfig::Live { .. })
                    || matches!(experiment.workload, WorkloadConfig::OnDemand(_))
            }
            Self::Interconnect => run.interconnect.is_some(),
            Self::Batching => experiment.offload.established_by == EstablishedBy::Adapter,
            Self::Load => run.clients.open_loop.is_some(),
            Self::Handoff => run.series.iter().any(|sample| sample.soft_limit > 0),
        }
    }
}

/// A column with its topic, and the function that returns its value for a run.
type Shown = (Topic, report::Metric, fn(&Results) -> Option<Estimate>);

const fn number(rank: u8, head: &'static str, means: &'static str) -> report::Metric {
    report::Metric {
        head,
        means,
        is_percent: false,
        rank: Some(rank),
    }
}

const fn percent(rank: u8, head: &'static str, means: &'static str) -> report::Metric {
    report::Metric {
        is_percent: true,
        ..number(rank, head, means)
    }
}

const TIME: &str = "ms: response time; in an open loop, since the request was due";
const DELAY: &str = "send, receive: median time of a host packet on the NIC";

/// Columns from left to right; columns of a higher rank are left out first.
const ALL: [Shown; 17] = [
    (
        Topic::Any,
        report::Metric {
            rank: None,
            ..number(0, "requests/s", "")
        },
        |run| Some(run.request_rate()),
    ),
    (Topic::Any, number(5, "Mb/s", ""), |run| {
        Some(run.content_mbps())
    }),
    (
        Topic::Caches,
        number(
            1,
            "on bus\nper byte",
            "on bus per byte: content on the bus for each byte of content delivered",
        ),
        |run| run.content_kept_off_bus().map(on_bus),
    ),
    (
        Topic::Caches,
        percent(3, "kept\noff bus", "kept off bus: share of the content"),
        Results::content_kept_off_bus,
    ),
    (Topic::Interconnect, percent(2, "bus\nin use", ""), |run| {
        let used = run.interconnect.as_ref()?;
        Some(Estimate::of_one(used.utilisation_percent))
    }),
    (
        Topic::Batching,
        number(
            1,
            "cross-\nings",
            "crossings: DMA operations for each response",
        ),
        |run| Some(Estimate::of_one(run.crossings_per_response())),
    ),
    (
        Topic::Load,
        number(2, "offered\nper s", "offered: requests that were due"),
        |run| {
            let open = run.clients.open_loop.as_ref()?;
            Some(Estimate::of_one(open.offered_rate))
        },
    ),
    (Topic::Load, number(3, "median\nms", TIME), |run| {
        run.median_response_ms()
    }),
    (Topic::Any, number(6, "mean\nms", TIME), |run| {
        run.mean_response_ms()
    }),
    (Topic::Any, number(7, "p99\nms", TIME), |run| {
        run.p99_response_ms()
    }),
    (Topic::Load, number(3, "p99.9\nms", TIME), |run| {
        run.p999_response_ms()
    }),
    (Topic::Any, percent(3, "host\nidle", ""), |run| {
        Some(Estimate::of_one(run.host.idle_percent))
    }),
    (Topic::Any, percent(4, "NIC\nidle", ""), |run| {
        Some(Estimate::of_one(run.nic.idle_percent))
    }),
    (Topic::Handoff, number(6, "send\nus", DELAY), |run| {
        median(run, |nic| &nic.send_delay_us)
    }),
    (Topic::Handoff, number(4, "receive\nus", DELAY), |run| {
        median(run, |nic| &nic.receive_delay_us)
    }),
    (
        Topic::Handoff,
        percent(2, "off-\nloaded", "offloaded: share of packets"),
        |run| Some(Estimate::of_one(run.handoff.offloaded_packets_percent)),
    ),
    (
        Topic::Any,
        number(5, "drops", "drops: frames lost at the NIC"),
        |run| {
            let drops: u64 = run.nic.drops.values().sum();
            Some(Estimate::of_one(drops as f64))
        },
    ),
];

/// Renders the table of runs, each with all its seeds. `elsewhere` names the place of columns that do not fit.
pub fn runs_table(groups: &[&[Results]], elsewhere: &str) -> String {
    let is_shown = |(topic, ..): &&Shown| groups.iter().any(|runs| is_about(*topic, runs));
    let shown: Vec<&Shown> = ALL.iter().filter(is_shown).collect();
    let row = |run: &Results| report::RunRow {
        name: run.experiment.name.clone(),
        is_steady: run.long_run.not_steady.is_empty(),
        values: shown.iter().map(|(_, _, value)| value(run)).collect(),
        limits: Limit::all_of(run)
            .into_iter()
            .map(Limit::short_name)
            .collect(),
    };
    let over_seeds = |runs: &&[Results]| {
        let rows: Vec<report::RunRow> = runs.iter().map(row).collect();
        report::RunRow::over_seeds(&rows)
    };
    let rows: Vec<report::RunRow> = groups.iter().filter_map(over_seeds).collect();
    let metrics: Vec<report::Metric> = shown.iter().map(|(_, metric, _)| *metric).collect();
    report::runs_table(&metrics, &rows, elsewhere)
}

fn is_about(topic: Topic, runs: &[Results]) -> bool {
    runs.iter().any(|run| topic.is_of(run))
}

/// Returns content bytes on the bus for each byte delivered, from the share of content that is kept off the bus.
fn on_bus(kept_percent: Estimate) -> Estimate {
    let share = kept_percent.times(-0.01);
    Estimate {
        mean: 1.0 + share.mean,
        ..share
    }
}

fn median(run: &Results, of: fn(&NicResults) -> &Distribution) -> Option<Estimate> {
    of(&run.nic).p50.map(Estimate::of_one)
}

//! The results for a log: numbers and conclusions. `--json` writes them directly, and the text is derived from them.

use baton_sim::results::{Limit, NotSteady, Results};
use baton_stats::Estimate;
use baton_workload::analyse::Analysis;
use serde::{Serialize, Serializer};
use std::path::PathBuf;

/// All results for a log.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// Facts about the log.
    pub log: LogFacts,
    /// The machine that served the log.
    pub machine: MachineFacts,
    /// The ways in which the server could work; the first is without handoff.
    pub ways: Vec<Way>,
    /// The log's own load; `None` if the log has no times.
    pub own_load: Option<OwnLoad>,
    /// Index of the recommended way; `None` if no way is better than no handoff.
    pub advised: Option<usize>,
    /// Indices of ways that are better than no handoff and cannot be told from the recommended one.
    pub as_good: Vec<usize>,
    /// Values of settings from which the ways pay.
    pub break_even: Vec<BreakEven>,
    /// Response times at limited loads; empty if no way hands off, or if the question was left out.
    pub under_load: Vec<UnderLoad>,
    /// Questions that were left out for lack of time.
    pub left_out: Vec<String>,
    /// Assumptions.
    pub assumed: Vec<String>,
}

/// The load that the log has.
#[derive(Debug, Serialize)]
pub struct OwnLoad {
    /// Requests in the busiest second.
    pub peak_per_s: f64,
    /// These requests as a share of the rate without handoff at unlimited demand, per cent.
    pub peak_percent: f64,
}

impl OwnLoad {
    pub fn of(log: &LogFacts, baseline: &Results) -> Option<Self> {
        let peak_per_s = log.busiest_second as f64;
        let peak_percent = 100.0 * peak_per_s / baseline.request_rate().mean;
        (log.busiest_second > 0).then_some(Self {
            peak_per_s,
            peak_percent,
        })
    }

    /// Returns whether the server without handoff needs less than half of its capacity for the log.
    pub fn is_light(&self) -> bool {
        self.peak_percent < LIGHT_PERCENT
    }
}

/// Share of the rate without handoff below which no way is needed, per cent.
const LIGHT_PERCENT: f64 = 50.0;

/// Facts about the log.
#[derive(Debug, Serialize)]
pub struct LogFacts {
    pub path: PathBuf,
    pub format: String,
    pub requests: u64,
    pub clients: u64,
    pub connections: u64,
    /// Requests a second, according to the times in the log.
    pub requests_per_s: f64,
    /// Largest number of requests in a second; 0 if the log has no times.
    pub busiest_second: u64,
    pub mean_response_bytes: f64,
    pub largest_response_bytes: u64,
    pub content_bytes: u64,
    pub footprint_bytes: u64,
    pub lines_skipped: u64,
    /// Why the clients cannot be identified, if they cannot.
    pub clients_unknown: Option<String>,
    /// Share of the content that is found in LRU caches of blocks, by cache size: what a cache on the NIC could keep off the bus.
    pub lru_hits: Vec<CachePoint>,
}

/// Hits of an LRU cache of this size.
#[derive(Debug, Serialize)]
pub struct CachePoint {
    pub cache_bytes: u64,
    pub hit_percent: f64,
}

impl LogFacts {
    pub fn of(path: PathBuf, analysis: &Analysis, clients_unknown: Option<String>) -> Self {
        let totals = &analysis.totals;
        let point = |point: &baton_workload::analyse::CachePoint| CachePoint {
            cache_bytes: point.cache_bytes,
            hit_percent: 100.0 * point.byte_hits,
        };
        Self {
            path,
            format: analysis.format.to_string(),
            requests: totals.requests,
            clients: totals.clients,
            connections: analysis.connections.requests.count,
            requests_per_s: totals.requests_per_s(),
            busiest_second: totals.busiest_second,
            mean_response_bytes: totals.mean_bytes(),
            largest_response_bytes: analysis.sizes.as_ref().map_or(0, |s| s.responses.max),
            content_bytes: totals.content_bytes,
            footprint_bytes: totals.footprint_bytes,
            lines_skipped: analysis.skipped.total(),
            clients_unknown,
            lru_hits: analysis.locality.caches.iter().map(point).collect(),
        }
    }
}

/// The machine that served the log.
#[derive(Debug, Serialize)]
pub struct MachineFacts {
    pub profile: String,
    pub host_mhz: u32,
    pub nics: u32,
    /// Rate of each NIC.
    pub nic_mips: u32,
    /// Rate of each NIC's link.
    pub link_mbps: u64,
    pub clients: u32,
}

impl MachineFacts {
    pub fn of(profile: &str, result: &Results) -> Self {
        let experiment = &result.experiment;
        Self {
            profile: profile.to_owned(),
            host_mhz: experiment.host.clock_mhz,
            nics: experiment.nics.count(),
            nic_mips: experiment.nic.mips,
            link_mbps: u64::from(experiment.wire.rate_mbps),
            clients: experiment.clients.connections,
        }
    }
}

/// One way in which the server could work.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    pub name: String,
    /// Responses a second with all clients, each of which sends its next request as soon as it has the response.
    pub request_rate: Estimate,
    pub content_mbps: Estimate,
    /// Working time of the host for a response, microseconds.
    pub host_us_per_request: Estimate,
    /// Share of the content that does not cross the bus to the NIC, per cent; `None` if NICs have no caches.
    pub kept_off_bus_percent: Option<Estimate>,
    /// Additional requests served relative to no handoff, per cent; `None` for no handoff itself.
    pub gain_percent: Option<Estimate>,
    /// Reduction of the host's working time for a response relative to no handoff, per cent; `None` for no handoff itself.
    pub host_time_saved_percent: Option<Estimate>,
    pub effect: Effect,
    pub host_busy_percent: f64,
    pub network_stack_percent: f64,
    pub nic_busy_percent: f64,
    /// Instruction rate that the processors of all NICs really use.
    pub nic_mips_used: f64,
    /// Memory of all NICs for their mean number of connections, and for their caches.
    pub nic_memory_bytes: u64,
    pub connections_on_nic: f64,
    pub frames_dropped: u64,
    /// Responses that the clients received.
    pub responses: u64,
    /// Timeouts of the clients' TCP.
    pub client_timeouts: u64,
    /// Parts that would have to be faster to serve more; empty if the clients request no more.
    pub limits: Vec<Limit>,
    /// Reasons why the estimates may not hold. Sizes that differ from the log's are not among them, because the estimates are corrected for
    /// them.
    pub not_steady: Vec<NotSteady>,
}

/// Effect of a way relative to no handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The way without handoff, which others are compared with.
    Baseline,
    /// More requests: the whole interval is above 0, and its middle is 1 % or more.
    Faster,
    /// No difference in requests that matters, but less work for the host: the whole interval is above 0, and its middle is 1 % or more.
    FreesHost,
    /// No difference that is significant and matters.
    None,
    /// Fewer requests: the whole interval is below 0, and its middle is -1 % or less.
    Slower,
}

impl Effect {
    fn of(gain: Option<Estimate>, saved: Option<Estimate>) -> Self {
        let Some(gain) = gain else {
            return Self::Baseline;
        };
        match (matters(gain), saved.map_or(0, matters)) {
            (1, _) => Self::Faster,
            (-1, _) => Self::Slower,
            (_, 1) => Self::FreesHost,
            _ => Self::None,
        }
    }
}

/// Returns the sign of a difference: 1 or -1 if the whole interval is on one side of 0, else 0.
pub fn sign(difference: Estimate) -> i8 {
    let half = difference.half_width.unwrap_or(f64::INFINITY);
    match difference.mean {
        mean if mean > half => 1,
        mean if mean < -half => -1,
        _ => 0,
    }
}

/// Smallest difference that matters, per cent.
const MATTERS_PERCENT: f64 = 1.0;

/// Returns the sign of a difference that is significant and large enough to matter, else 0.
pub fn matters(difference: Estimate) -> i8 {
    match difference.mean.abs() >= MATTERS_PERCENT {
        true => sign(difference),
        false => 0,
    }
}

impl Way {
    /// Evaluates a run; `baseline` is the run without handoff, `None` for this run itself.
    pub fn of(result: &Results, baseline: Option<&Results>) -> Self {
        let nic = &result.experiment.nic;
        let nics = f64::from(result.experiment.nics.count());
        let difference = |value: fn(&Results) -> Estimate| {
            baseline.and_then(|baseline| value(baseline).difference_percent(value(result)))
        };
        let gain = difference(Results::request_rate);
        let saved = difference(host_us).map(|more| more.times(-1.0));
        let connections = result.nic.connections_mean;
        let caches = match result.nics.iter().any(|port| port.cache.is_some()) {
            true => u64::from(nic.firmware.cache.kib) * 1024 * nics as u64,
            false => 0,
        };
        let busy = 100.0 - result.nic.idle_percent;
        let not_steady = result.long_run.not_steady.iter().copied();
        Self {
            name: result.experiment.name.clone(),
            request_rate: result.request_rate(),
            content_mbps: result.content_mbps(),
            host_us_per_request: host_us(result),
            kept_off_bus_percent: result
                .long_run
                .content_kept_off_bus_percent
                .filter(|_| caches > 0),
            gain_percent: gain,
            host_time_saved_percent: saved,
            effect: Effect::of(gain, saved),
            host_busy_percent: 100.0 - result.host.idle_percent,
            network_stack_percent: result.host.network_stack_percent,
            nic_busy_percent: busy,
            nic_mips_used: busy / 100.0 * f64::from(nic.mips) * nics,
            nic_memory_bytes: (connections * f64::from(nic.firmware.connection_bytes)) as u64
                + caches,
            connections_on_nic: connections,
            frames_dropped: result.nic.drops.values().sum(),
            responses: result.clients.responses,
            client_timeouts: result.clients.timeouts,
            limits: Limit::all_of(result),
            not_steady: not_steady
                .filter(|why| *why != NotSteady::OtherSizes)
                .collect(),
        }
    }
}

/// Returns the working time of the host for a response, microseconds. For a run too short for an estimate, this is the counted time.
fn host_us(result: &Results) -> Estimate {
    let busy_us = result.measured_s * 1e6 * (1.0 - result.host.idle_percent / 100.0);
    let counted = Estimate::of_one(busy_us / result.clients.responses.max(1) as f64);
    result.long_run.host_us_per_request.unwrap_or(counted)
}

/// Returns the index of the way that serves most or, if none serves more than no handoff, frees most of the host, and the indices of
/// the ways whose results do not differ from it significantly. Later ways need a more powerful NIC, so the first index is the simplest way.
pub fn advised(ways: &[Way]) -> Vec<usize> {
    let best = |effect: Effect, value: fn(&Way) -> Estimate, is_more_better: bool| {
        let of_effect = (0..ways.len()).filter(|&number| ways[number].effect == effect);
        let by_value = |a: &usize, b: &usize| {
            let [a, b] = [a, b].map(|&number| value(&ways[number]).mean);
            if is_more_better {
                a.total_cmp(&b)
            } else {
                b.total_cmp(&a)
            }
        };
        let Some(best) = of_effect.clone().max_by(by_value) else {
            return Vec::new();
        };
        let is_as_good = |&number: &usize| {
            let difference = value(&ways[best]).difference_percent(value(&ways[number]));
            number == best || difference.is_some_and(|difference| matters(difference) == 0)
        };
        of_effect.filter(is_as_good).collect()
    };
    match best(Effect::Faster, |way| way.request_rate, true) {
        none if none.is_empty() => best(Effect::FreesHost, |way| way.host_us_per_request, false),
        faster => faster,
    }
}

/// Response times where requests come as a Poisson process, independently of earlier responses.
#[derive(Clone, Debug, Serialize)]
pub struct UnderLoad {
    /// Offered requests a second.
    pub offered_per_s: f64,
    /// Offered load as a share of the rate without handoff at unlimited demand, per cent.
    pub share_percent: f64,
    /// Mean response time without handoff, from when a request was due, milliseconds; `None` if the load exceeds what can be served.
    pub baseline_ms: Option<Estimate>,
    /// Name of the way that is compared.
    pub way: String,
    /// Mean response time of this way.
    pub way_ms: Option<Estimate>,
}

baton_named::named! {
    /// A question about a way: the value of a setting from which it pays.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Question {
        NicSpeed => "nic.mips",
        Connections => "nic.firmware.hard_limit",
        CacheSize => "nic.firmware.cache.kib",
        /// The load, on which response times depend.
        Load => "load.rate",
    }
}

impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Gain at one value of a setting.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    pub value: f64,
    /// Additional requests served relative to no handoff, per cent.
    pub gain_percent: Estimate,
}

/// The values of a setting at which a way pays.
#[derive(Clone, Debug, Serialize)]
pub struct BreakEven {
    /// The setting.
    #[serde(rename = "key")]
    pub question: Question,
    /// Name of the way.
    pub way: String,
    /// Gains, in the order of the values.
    pub points: Vec<Point>,
    /// Values at which more requests are served than without handoff, by a difference that matters.
    pub pays_at: Vec<f64>,
}

impl BreakEven {
    pub fn new(question: Question, way: &str, points: Vec<Point>) -> Self {
        let faster = points
            .iter()
            .filter(|point| matters(point.gain_percent) > 0);
        Self {
            question,
            way: way.to_owned(),
            pays_at: faster.map(|point| point.value).collect(),
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate {
            mean,
            half_width: Some(half),
        }
    }

    #[test]
    fn a_difference_counts_only_if_its_whole_interval_has_one_sign() {
        let effect = |gain, saved| Effect::of(Some(gain), Some(saved));
        assert_eq!(
            effect(estimate(5.0, 4.9), estimate(0.0, 1.0)),
            Effect::Faster
        );
        assert_eq!(
            effect(estimate(-5.0, 4.9), estimate(9.0, 1.0)),
            Effect::Slower
        );
        assert_eq!(
            effect(estimate(5.0, 5.1), estimate(9.0, 1.0)),
            Effect::FreesHost
        );
        assert_eq!(
            effect(estimate(-5.0, 5.1), estimate(0.9, 1.0)),
            Effect::None
        );
        assert_eq!(
            effect(estimate(0.3, 0.1), estimate(0.9, 0.1)),
            Effect::None,
            "both are too small to matter"
        );
        assert_eq!(Effect::of(None, None), Effect::Baseline);
        assert_eq!(
            sign(Estimate::of_one(50.0)),
            0,
            "a single run proves nothing"
        );
    }
}

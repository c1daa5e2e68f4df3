//! Estimates of a run for the long run.

use baton_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Estimates for the long run, that is, the values that the run would measure if it continued. They use the measurements after the warm-up
/// found by MSER, and have 95 % intervals of batch means.
///
/// A response counts once, when its last byte arrives, whenever it was requested; a connection counts when it ends, a byte when it arrives.
/// At both ends of a run some work is in progress, so that its bytes and its requests are not counted together. The estimates are free of
/// this effect: they are for responses of the mean size [`LongRun::mean_response_bytes`] on connections of the log's mean length, which are
/// control variates ([`baton_stats::per_request`]). So throughput divided by request rate is that size, and the cost of a byte is known
/// well before the largest responses have been served as often as in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LongRun {
    /// Complete responses per second of simulated time.
    pub request_rate: Option<Estimate>,
    /// Content of these responses per second, Mb/s.
    pub content_mbps: Option<Estimate>,
    /// Time that the host works for one response, microseconds.
    pub host_us_per_request: Option<Estimate>,
    /// Share of the content that did not cross a bus to a NIC, per cent; negative if content crossed more often than it arrived. Has no
    /// interval if caches on NICs were still filling; the interval is wider than that of the batches if fewer large responses were served
    /// than the log has.
    pub content_kept_off_bus_percent: Option<Estimate>,
    /// Response time of an open loop, from when a request was due. `None` in a closed loop, where it follows from the request rate
    /// (Little's law), and if more was offered than could be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ms: Option<ResponseTime>,
    /// Request rate of the same run from an overloaded start, in which all clients connect at once, if that was tried too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overloaded_start: Option<Estimate>,
    /// Mean size of the responses to which the estimates apply: of all requests in a log, or, for a workload without end, of the served
    /// responses.
    pub mean_response_bytes: f64,
    /// Mean size of the responses that were served.
    pub served_response_bytes: f64,
    /// Passes over the log, including the warm-up; `None` for a workload without end.
    pub passes: Option<f64>,
    /// Share of the measured part that is still warm-up and is excluded here, per cent.
    pub cut_percent: f64,
    /// Number of batches from which the interval of the request rate was computed.
    pub batches: u32,
    /// Reasons why the estimates may not hold; empty if the run was steady.
    pub not_steady: Vec<NotSteady>,
}

/// A response time in the long run, ms.
///
/// The mean has an interval of batch means. A percentile is that of all responses. Its interval comes from the percentiles of equal
/// sections of the run, as many as had independent means, with at least ten responses beyond the percentile in each
/// ([`baton_stats::sectioned`]). A percentile with fewer than ten responses beyond it in the whole run is omitted; a percentile with fewer
/// than ten in an eighth of the run has no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResponseTime {
    pub mean: Estimate,
    pub p50: Option<Estimate>,
    pub p90: Option<Estimate>,
    pub p99: Option<Estimate>,
    pub p999: Option<Estimate>,
}

baton_named::named! {
    /// Reason why a run was not steady.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum NotSteady {
        /// There were too few responses for a conclusion.
        TooShort => "too few responses for an interval",
        /// More requests were offered than could be served. Either the number of requests in progress in the last quarter of the run exceeds
        /// that in the first quarter by a fiftieth of the requests that arrived, or as many were lost, or as many were not served while a
        /// processor, the link, the bus or a disk was always busy. There is no response time in the long run.
        Saturated => "more requests were offered than it can serve",
        /// Clients were still starting when measurement began.
        ClientsStarting => "clients were still starting when measurement began",
        /// Caches on NICs still had free space when measurement began, in the first pass over the log: some content crosses the bus that will
        /// not cross it from the second pass on.
        CachesFilling => "caches on NICs were still filling when measurement began",
        /// MSER would cut more than half of the measured part.
        StillWarmingUp => "more than half of the measured part was still warm-up",
        /// The time per request grew or fell during the whole run.
        Trend => "the time per request was still rising or falling",
        /// The number of connections, or the NIC's queues or losses, changed from the beginning of the measured part to its end: an overload at
        /// the start, or the handing over of connections, took longer than that.
        Settling => "connections, queues or losses at the NIC were still changing",
        /// The mean size of the served responses differs from the log's by more than a tenth. Estimates are corrected for this difference;
        /// measured values (responses, delays, cycles) are not.
        OtherSizes => "the mean size of the responses served differs from the log's by more than 10 %",
        /// From an overloaded start, in which all clients connect at once, the run has another request rate.
        StartsDiffer => "from a start in which all clients connect at once, the request rate is another",
        /// Even large batches are correlated, so intervals are too narrow.
        BatchesDepend => "neighbouring parts of the run are correlated, so that intervals are too narrow",
    }
}

impl NotSteady {
    /// Returns whether everything measured so far must be excluded as warm-up.
    pub(crate) const fn is_warm_up(self) -> bool {
        matches!(
            self,
            Self::ClientsStarting | Self::CachesFilling | Self::StillWarmingUp
        )
    }

    /// Returns a text with all reasons.
    pub fn texts(all: &[Self]) -> String {
        let texts: Vec<&str> = all.iter().map(|why| why.name()).collect();
        texts.join("; ")
    }
}

impl LongRun {
    /// Reports whether the run was not steady, so that its results may not hold.
    pub const fn is_doubtful(&self) -> bool {
        !self.not_steady.is_empty()
    }

    /// Reports whether the request rate, and the share of content kept off the bus, are known to within `percent` per cent, and the run was
    /// steady except for response sizes, for which the estimates are corrected.
    pub fn is_known_to(&self, percent: f64) -> bool {
        let rate = self.request_rate.and_then(|rate| rate.relative());
        let kept = self.content_kept_off_bus_percent;
        let is_narrow = |kept: Estimate| kept.half_width.is_some_and(|half| half <= percent);
        let is_near =
            rate.is_some_and(|share| 100.0 * share <= percent) && kept.is_none_or(is_narrow);
        is_near
            && self
                .not_steady
                .iter()
                .all(|why| *why == NotSteady::OtherSizes)
    }
}

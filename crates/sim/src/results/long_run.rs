//! What a run says about the long run.

use baton_stats::Estimate;
use serde::{Deserialize, Serialize};

/// What a run says about the long run: what it would measure if it went on, with 95 % intervals of batch means, after the warm-up that
/// MSER finds.
///
/// A response counts once, when its last byte has come, whenever it was asked for; a connection when it has ended; a byte when it has
/// come. At both ends of a run some work is under way, whose bytes and requests are not counted together. The estimates are free of that:
/// they are for responses of the mean size [`LongRun::mean_response_bytes`] on connections of the log's mean length, which are control
/// variates ([`baton_stats::per_request`]). So throughput divided by request rate is that size, and what a byte costs is known well before the
/// largest responses have come as often as in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongRun {
    /// Complete responses per second of simulated time.
    pub request_rate: Option<Estimate>,
    /// Content of these responses per second, Mb/s.
    pub content_mbps: Option<Estimate>,
    /// Time for which the host works for a response, microseconds.
    pub host_us_per_request: Option<Estimate>,
    /// Share of the content that did not cross a bus to a NIC, per cent; below 0 where content crossed more often than it arrived. Without
    /// an interval where caches on NICs were still filling; wider than batches tell where they saw less large responses than the log has.
    pub content_kept_off_bus_percent: Option<Estimate>,
    /// Response time of an open loop, from when a request was due; none in a closed loop, where it follows from the request rate (Little's law),
    /// or where more was offered than could be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ms: Option<ResponseTime>,
    /// Mean size of the responses for which this holds: of all requests in a log; of a workload without end, of those that were served.
    pub mean_response_bytes: f64,
    /// Mean size of the responses that were served.
    pub served_response_bytes: f64,
    /// Passes over the log, warm-up included; none of a workload without end.
    pub passes: Option<f64>,
    /// Share of the measured part that is still warm-up, and left out here, per cent.
    pub cut_percent: f64,
    /// Batches of which the interval of the request rate was made.
    pub batches: u32,
    /// Why all this may not hold; nothing if the run was steady.
    pub not_steady: Vec<NotSteady>,
}

/// A response time in the long run, ms.
///
/// The mean has an interval of batch means. A percentile is that of all responses, and its interval comes from those of as many equal sections
/// of the run as had independent means, each of them with ten responses or more beyond it ([`baton_stats::sectioned`]). A percentile with
/// fewer than ten responses beyond it in the whole run is not told; one with fewer than ten in an eighth of the run has no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ResponseTime {
    pub mean: Estimate,
    pub p50: Option<Estimate>,
    pub p90: Option<Estimate>,
    pub p99: Option<Estimate>,
    pub p999: Option<Estimate>,
}

/// Why a run was not steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSteady {
    /// There were too few responses to say anything.
    TooShort,
    /// More requests were offered than could be served: in the last quarter of the run more were under way than in the first, by a fiftieth of
    /// those that came, or as many were lost, or were not served while a processor, the link, the bus or a disk was always busy. There is no
    /// response time in the long run.
    Saturated,
    /// Clients were still starting when measurement began.
    ClientsStarting,
    /// Caches on NICs still had room when measurement began, in the first pass over the log: content crosses the bus that will not from the
    /// second pass on.
    CachesFilling,
    /// MSER would rather cut more than half of what was measured.
    StillWarmingUp,
    /// The time that a request takes grew or fell all along.
    Trend,
    /// The mean size of the responses that were served differs from the log's by more than a tenth. Estimates are corrected for that; what
    /// was counted (responses, delays, cycles) is not.
    OtherSizes,
    /// Even large batches depend on each other: intervals are too narrow.
    BatchesDepend,
}

impl NotSteady {
    /// Whether what was measured so far is to be left out, as warm-up.
    pub(crate) const fn is_warm_up(self) -> bool {
        matches!(
            self,
            Self::ClientsStarting | Self::CachesFilling | Self::StillWarmingUp
        )
    }

    /// All that was found, in words.
    pub fn texts(all: &[Self]) -> String {
        let texts: Vec<&str> = all.iter().map(|why| why.text()).collect();
        texts.join("; ")
    }

    /// What was found.
    const fn text(self) -> &'static str {
        match self {
            Self::TooShort => "too few responses to tell",
            Self::Saturated => "offered more than it can serve",
            Self::ClientsStarting => "clients were still starting",
            Self::CachesFilling => "caches on NICs were still filling",
            Self::StillWarmingUp => "still warming up",
            Self::Trend => "still getting slower or faster",
            Self::OtherSizes => "responses served are not like the log's in the mean",
            Self::BatchesDepend => {
                "parts of the run depend on each other: intervals are too narrow"
            }
        }
    }
}

impl LongRun {
    /// Whether the run was not steady, so that its results may not hold.
    pub const fn is_doubtful(&self) -> bool {
        !self.not_steady.is_empty()
    }

    /// Whether the request rate, and what is kept off the bus, are known to so many per cent, and the run was steady but for sizes, for
    /// which they are corrected.
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

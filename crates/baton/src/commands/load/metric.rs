//! Response-time metrics.

use baton_sim::results::ResponseTime;
use baton_stats::Estimate;
use serde::Serialize;

/// A statistic of many response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Metric {
    /// The mean.
    #[serde(rename = "mean")]
    Mean,
    /// The value that half of the response times do not exceed.
    #[serde(rename = "p50")]
    P50,
    /// The value that 90 of 100 response times do not exceed.
    #[serde(rename = "p90")]
    P90,
    /// The value that 99 of 100 response times do not exceed.
    #[serde(rename = "p99")]
    P99,
    /// The value that 999 of 1000 response times do not exceed.
    #[serde(rename = "p99.9")]
    P999,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P90, Self::P99, Self::P999];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// Returns the metric of these responses, ms, or `None` if they are too few.
    pub fn of(self, time: &ResponseTime) -> Option<Estimate> {
        match self {
            Self::Mean => Some(time.mean),
            Self::P50 => time.p50,
            Self::P90 => time.p90,
            Self::P99 => time.p99,
            Self::P999 => time.p999,
        }
    }
}

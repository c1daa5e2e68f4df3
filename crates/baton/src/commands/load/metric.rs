//! Response-time metrics.

use baton_sim::results::ResponseTime;
use baton_stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

baton_named::named! {
    /// A statistic of many response times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    pub enum Metric {
        /// The mean.
        #[serde(rename = "mean")]
        Mean => "mean",
        /// The value that half of the response times do not exceed.
        #[serde(rename = "p50")]
        P50 => "p50",
        /// The value that 90 of 100 response times do not exceed.
        #[serde(rename = "p90")]
        P90 => "p90",
        /// The value that 99 of 100 response times do not exceed.
        #[serde(rename = "p99")]
        P99 => "p99",
        /// The value that 999 of 1000 response times do not exceed.
        #[serde(rename = "p99.9")]
        P999 => "p99.9",
    }
}

impl Metric {
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

//! Which response time.

use baton_sim::results::ResponseTime;
use baton_stats::Estimate;
use serde::Serialize;

/// A response time of many responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Metric {
    /// Their mean.
    #[serde(rename = "mean")]
    Mean,
    /// What half of them do not exceed.
    #[serde(rename = "p50")]
    P50,
    /// What 90 of 100 do not exceed.
    #[serde(rename = "p90")]
    P90,
    /// What 99 of 100 do not exceed.
    #[serde(rename = "p99")]
    P99,
    /// What 999 of 1000 do not exceed.
    #[serde(rename = "p99.9")]
    P999,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P90, Self::P99, Self::P999];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// Of these responses, ms; none of too few.
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

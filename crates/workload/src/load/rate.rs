//! Request rates.

use super::text::{deserialize, positive};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Mean request rate: `2x` is twice that of the log, `5000/s` is an absolute rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rate {
    /// Multiple of the log's rate.
    Times(f64),
    /// Requests per second.
    PerSecond(f64),
}

/// A text is not a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {}", Rate::EXPECTED)]
pub struct NotRate;

impl Rate {
    /// Description of valid rates.
    pub const EXPECTED: &str = "a rate: 2x (of the log's, at most 1000000x) or 5000/s (requests a second, at most 100000000/s)";
    /// Highest rate in requests per second: higher rates are no load for one server, and take forever to simulate.
    pub const MOST_PER_SECOND: f64 = 1e8;
    /// Highest multiple of the log's rate.
    const MOST_TIMES: f64 = 1e6;
}

impl FromStr for Rate {
    type Err = NotRate;

    fn from_str(text: &str) -> Result<Self, NotRate> {
        let times = text.strip_suffix('x').and_then(positive);
        let times = times.filter(|times| *times <= Self::MOST_TIMES);
        let per_second = || {
            let rate = text.strip_suffix("/s").and_then(positive);
            rate.filter(|rate| *rate <= Self::MOST_PER_SECOND)
        };
        let rate = times
            .map(Self::Times)
            .or_else(|| per_second().map(Self::PerSecond));
        rate.ok_or(NotRate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "{times}x"),
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, Self::EXPECTED)
    }
}

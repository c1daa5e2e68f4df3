//! Think times of clients.

use super::pareto::Pareto;
use super::text::{deserialize, positive};
use super::{exponential, picoseconds};
use rand_pcg::Pcg64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Time that a client waits after a response before it sends the next request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Think {
    /// Constant: `7s`, `250ms`. Seconds.
    Constant(f64),
    /// Exponential with this mean: `exponential:7s`. Seconds.
    Exponential(f64),
    /// Pareto: `pareto:7s:1.5`. (Idle times of web users had a shape of 1.5: see [`super::OnOffSpec`].)
    Pareto {
        /// Mean, seconds.
        mean: f64,
        /// The share of times over `t` falls as `t^-shape`; over 1.
        shape: f64,
    },
    /// Time from one request to the next in the log, on each connection: `log`.
    Log,
}

/// A text is not a think time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {}", Think::EXPECTED)]
pub struct NotThink;

impl Think {
    /// Description of valid think times.
    pub const EXPECTED: &str =
        "a think time: 7s (or ms, us), exponential:7s, pareto:7s:1.5 (mean and shape) or log";

    /// Draws a think time in picoseconds; returns `None` if the log provides it.
    pub(super) fn sample(self, random: &mut Pcg64) -> Option<u64> {
        let seconds = match self {
            Self::Constant(seconds) => seconds,
            Self::Exponential(mean) => mean * exponential(random),
            Self::Pareto { mean, shape } => Pareto::new(mean, shape).sample(random),
            Self::Log => return None,
        };
        Some(picoseconds(seconds))
    }
}

fn seconds(text: &str) -> Option<f64> {
    let units = [("ms", 1e3), ("us", 1e6), ("s", 1.0)];
    let number = units
        .iter()
        .find_map(|(unit, of)| Some(positive(text.strip_suffix(unit)?)? / of));
    number.or_else(|| (text == "0s").then_some(0.0))
}

impl FromStr for Think {
    type Err = NotThink;

    fn from_str(text: &str) -> Result<Self, NotThink> {
        let parts: Vec<&str> = text.split(':').collect();
        let think = match parts[..] {
            ["log"] => Some(Self::Log),
            [constant] => seconds(constant).map(Self::Constant),
            ["exponential", mean] => seconds(mean).map(Self::Exponential),
            ["pareto", mean, shape] => {
                let shape = positive(shape).filter(|shape| *shape > 1.0);
                let both = seconds(mean).zip(shape);
                both.map(|(mean, shape)| Self::Pareto { mean, shape })
            }
            _ => None,
        };
        think.ok_or(NotThink)
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(seconds) => write!(f, "{seconds}s"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}s"),
            Self::Pareto { mean, shape } => write!(f, "pareto:{mean}s:{shape}"),
            Self::Log => f.write_str("log"),
        }
    }
}

impl Serialize for Think {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer, Self::EXPECTED)
    }
}

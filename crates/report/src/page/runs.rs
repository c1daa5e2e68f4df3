//! Runs as a page has them.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Runs, and what all of them have in common.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Runs {
    /// What is measured, in the order of [`Run::values`].
    pub measures: Vec<Measure>,
    /// Keys of configurations that differ between runs, in the order of [`Run::keys`].
    pub keys: Vec<String>,
    /// Keys that are the same in all runs, with their values.
    pub common: BTreeMap<String, String>,
    /// Parts of the host's time, in the order of [`Run::cycles_percent`].
    pub layers: Vec<String>,
    /// The runs.
    pub runs: Vec<Run>,
}

/// A number that runs have.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// Its column's name.
    pub name: String,
    /// That in words, with the unit.
    pub label: String,
    /// What it is.
    pub meaning: String,
    /// Whether the table shows it before somebody asks for it.
    pub shown: bool,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// What it is called.
    pub name: String,
    /// Of several files or folders: which it comes from.
    pub source: String,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// What is busy all the time, in words; empty where nothing is.
    pub limit: String,
    /// Why its numbers may not hold, or that it failed; empty where they do.
    pub doubt: String,
    /// Values of the keys that differ, as text; empty where one is not set.
    pub keys: Vec<String>,
    /// What was measured; none where it was not.
    #[serde(serialize_with = "in_short")]
    pub values: Vec<Option<f64>>,
    /// Shares of the host's cycles, per cent.
    #[serde(serialize_with = "to_hundredths")]
    pub cycles_percent: Vec<f64>,
    /// How it went.
    pub samples: Samples,
}

/// Values at times, of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Samples {
    /// Simulated time, microseconds.
    pub time_us: Vec<u64>,
    /// Connections that the server has.
    pub open: Vec<u32>,
    /// Of these, connections on the NIC.
    pub on_nic: Vec<u32>,
    /// How many the NIC may have.
    pub soft_limit: Vec<u32>,
    /// Packets that wait on the NIC.
    pub queue: Vec<u32>,
    /// Responses since the start.
    pub responses: Vec<u64>,
    /// Requests that came and have no answer yet; nothing in a closed loop.
    pub unanswered: Vec<u64>,
}

/// Six significant digits are more than anybody sees in a figure, and a page of many runs is half as large for it.
fn in_short<S: Serializer>(values: &[Option<f64>], serializer: S) -> Result<S::Ok, S::Error> {
    let short = |value: &Option<f64>| {
        let value = value.filter(|value| value.is_finite())?;
        match value.fract() == 0.0 && value.abs() < 1e15 {
            true => Some(serde_json::Number::from(value as i64)),
            false => serde_json::Number::from_f64(format!("{value:.5e}").parse().ok()?),
        }
    };
    serializer.collect_seq(values.iter().map(short))
}

fn to_hundredths<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|value| (value * 100.0).round() / 100.0))
}

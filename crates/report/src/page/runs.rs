//! Runs, in the form that pages need.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Runs, and the keys that all of them have in common.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Runs {
    /// Measures, in the order of [`Run::values`].
    pub measures: Vec<Measure>,
    /// Configuration keys that differ between runs, in the order of [`Run::keys`].
    pub keys: Vec<String>,
    /// These keys in words, with units.
    pub keys_in_words: Vec<String>,
    /// Configuration keys that are the same in all runs, with their values.
    pub common: BTreeMap<String, String>,
    /// Parts of the host's time, in the order of [`Run::cycles_percent`].
    pub layers: Vec<String>,
    /// The runs.
    pub runs: Vec<Run>,
}

/// A number measured for each run.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// Name of the column.
    pub name: String,
    /// Name in words, with the unit.
    pub label: String,
    /// Meaning of the measure.
    pub meaning: String,
    /// Whether the table shows the measure by default.
    pub shown: bool,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// Name of the run.
    pub name: String,
    /// The file or folder that the run comes from, if there are several.
    pub source: String,
    /// Random seed.
    pub seed: u64,
    /// The bottleneck, in words; empty if there is none.
    pub limit: String,
    /// Why the numbers may not be valid, or that the run failed; empty if they are valid.
    pub doubt: String,
    /// Values of the keys that differ, as text; empty for keys that are not set.
    pub keys: Vec<String>,
    /// Measured values; `None` where nothing was measured.
    #[serde(serialize_with = "in_short")]
    pub values: Vec<Option<f64>>,
    /// Shares of the host's cycles, in per cent.
    #[serde(serialize_with = "to_hundredths")]
    pub cycles_percent: Vec<f64>,
    /// Samples over time.
    pub samples: Samples,
}

/// Samples of one run over time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Samples {
    /// Simulated time, in microseconds.
    pub time_us: Vec<u64>,
    /// Number of connections of the server.
    pub open: Vec<u32>,
    /// Number of these connections that are on the NIC.
    pub on_nic: Vec<u32>,
    /// Maximum number of connections on the NIC.
    pub soft_limit: Vec<u32>,
    /// Number of packets that wait on the NIC.
    pub queue: Vec<u32>,
    /// Number of responses since the start.
    pub responses: Vec<u64>,
    /// Number of requests that were received and not yet answered; empty in a closed loop.
    pub unanswered: Vec<u64>,
}

/// Six significant digits are more than is visible in a figure, and halve the size of a page with many runs.
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

//! What came out of a study, for machines.

use super::{Comparison, Outcome, label};
use serde::Serialize;

/// A number of a point of a study, and what is published of it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    config: String,
    metric: &'static str,
    /// The configuration beside which it is, where it is a difference or ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<String>,
    published: Option<f64>,
    simulated: Option<f64>,
    /// Half of the 95 % interval of the latter.
    half_width: Option<f64>,
    /// How it compares.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
}

/// A row for each number of each point that is published or that the study's table shows.
pub fn rows(outcome: &Outcome<'_>) -> Vec<Row> {
    let name = |point| label(outcome.plan, point);
    let row = |row: &Comparison<'_>| Row {
        config: name(row.point),
        metric: row.metric,
        against: row.against.map(name),
        published: row.number.map(|number| number.value),
        simulated: row.simulated.map(|found| found.mean),
        half_width: row.simulated.and_then(|found| found.half_width),
        verdict: row.verdict().map(super::Verdict::in_words),
    };
    Comparison::all(outcome).iter().map(row).collect()
}

//! Results of a study as machine-readable rows.

use super::{Comparison, Outcome, label};
use serde::Serialize;

/// A number of a point of a study, with the published number.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    config: String,
    metric: &'static str,
    /// The configuration that the number is relative to, for a difference or a ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<String>,
    published: Option<f64>,
    simulated: Option<f64>,
    /// Half of the 95 % interval of the simulated number.
    half_width: Option<f64>,
    /// Result of the comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
}

/// Returns a row for each number of each point that is published or that is in the study's table.
pub fn rows(outcome: &Outcome<'_>) -> Vec<Row> {
    let name = |point| label(outcome.plan, point);
    let row = |row: &Comparison<'_>| Row {
        config: name(row.point),
        metric: row.metric,
        against: row.against.map(name),
        published: row.number.map(|number| number.value),
        simulated: row.simulated.map(|found| found.mean),
        half_width: row.simulated.and_then(|found| found.half_width),
        verdict: row.verdict().map(super::Verdict::name),
    };
    Comparison::all(outcome).iter().map(row).collect()
}

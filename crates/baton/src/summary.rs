//! Summarises several runs of one configuration, and the differences between configurations.

use baton_sim::results::Results;
use baton_stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Parts of results that are not measured numbers.
const LEFT_OUT: [&str; 4] = ["version", "experiment", "commit", "series"];

/// One configuration with all its seeds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Name of the configuration in the experiment.
    pub name: String,
    /// Number of seeds that it was run with.
    pub seeds: usize,
    /// All numbers of its results, by their paths: means over the seeds, with 95 % intervals if there are several seeds.
    pub metrics: BTreeMap<String, Estimate>,
    /// Difference from the first configuration; `None` for the first itself, or if the requests are different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_first: Option<Difference>,
}

/// Difference of a configuration from another that serves the same requests, per cent of the other.
///
/// With several seeds, each run is compared with the other configuration's run of the same seed, so that common effects do not widen the
/// interval. With one seed, the intervals of both runs are combined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Difference of the request rate.
    pub request_rate_percent: Estimate,
    /// Difference of the throughput.
    pub content_mbps_percent: Estimate,
}

/// Returns the summaries of all configurations, in order. `groups` holds, for each, its runs with all seeds.
pub fn of(groups: &[&[Results]]) -> Vec<Summary> {
    let first = groups.first().copied().unwrap_or_default();
    let summary = |(number, runs): (usize, &&[Results])| {
        let is_other = number > 0 && serve_the_same(first, runs);
        Some(Summary {
            name: runs.first()?.experiment.name.clone(),
            seeds: runs.len(),
            metrics: metrics(runs),
            against_first: is_other.then(|| difference(first, runs)).flatten(),
        })
    };
    groups.iter().enumerate().filter_map(summary).collect()
}

fn serve_the_same(these: &[Results], others: &[Results]) -> bool {
    these.len() == others.len()
        && these.iter().zip(others).all(|(this, other)| {
            this.workload == other.workload
                && this.experiment.workload == other.experiment.workload
                && this.experiment.run.seed == other.experiment.run.seed
        })
}

fn difference(these: &[Results], others: &[Results]) -> Option<Difference> {
    let of = |value: fn(&Results) -> Estimate| match (these, others) {
        ([this], [other]) => value(this).difference_percent(value(other)),
        _ => {
            let means =
                |runs: &[Results]| -> Vec<f64> { runs.iter().map(|run| value(run).mean).collect() };
            Estimate::of_difference_percent(&means(these), &means(others))
        }
    };
    Some(Difference {
        request_rate_percent: of(Results::request_rate)?,
        content_mbps_percent: of(Results::content_mbps)?,
    })
}

fn metrics(runs: &[Results]) -> BTreeMap<String, Estimate> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in runs {
        if let Ok(Value::Object(object)) = serde_json::to_value(run) {
            for (name, value) in object {
                if !LEFT_OUT.contains(&name.as_str()) {
                    gather(&mut values, name, &value);
                }
            }
        }
    }
    values.retain(|_, values| values.len() == runs.len());
    let estimates = values.into_iter();
    let estimates =
        estimates.filter_map(|(path, values)| Some((path, Estimate::of_independent(&values)?)));
    estimates.collect()
}

/// Adds all numbers of a value under their paths.
fn gather(values: &mut BTreeMap<String, Vec<f64>>, path: String, value: &Value) {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            values.entry(path).or_default().push(number);
        }
        Value::Object(object) => {
            for (name, value) in object {
                gather(values, format!("{path}.{name}"), value);
            }
        }
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                gather(values, format!("{path}.{index}"), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

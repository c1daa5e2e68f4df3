//! Runs, in the form that pages need.

use baton_report::page::{Measure, Run, Samples};
use baton_sim::results::{Limit, NotSteady, Results, Sample};
use baton_study::table::{Cell, metrics};
use std::collections::BTreeMap;

/// The part of the host's time in which it is idle.
pub const IDLE: &str = "idle";
/// Maximum number of samples of one run.
pub const MOST_SAMPLES: usize = 400;

/// Returns a metric in the form that pages need.
pub fn measure(metric: &metrics::Metric) -> Measure {
    Measure {
        name: metric.name.to_owned(),
        label: metric.label(),
        meaning: metric.meaning.to_owned(),
        shown: metrics::MAIN.contains(&metric.name),
    }
}

/// Returns a run in the form that pages need, except for the parts that depend on other runs.
pub fn of(source: &str, name: &str, results: &Results) -> Run {
    let values = metrics::of(results);
    let value = |metric: &metrics::Metric| values.get(metric.name).and_then(Cell::as_number);
    let limits = Limit::all_of(results);
    let not_steady = NotSteady::texts(&results.long_run.not_steady);
    Run {
        name: name.to_owned(),
        source: source.to_owned(),
        seed: results.experiment.run.seed,
        limit: limits
            .into_iter()
            .map(|limit| limit.to_string())
            .collect::<Vec<_>>()
            .join(", "),
        doubt: match not_steady.is_empty() {
            true => String::new(),
            false => format!("not steady: {not_steady}"),
        },
        values: metrics::ALL.iter().map(value).collect(),
        ..Run::default()
    }
}

/// Returns the shares of the host's cycles by layer and idle, in per cent; empty if the host had no cycles.
pub fn cycles_percent(results: &Results) -> BTreeMap<String, f64> {
    let host = &results.host;
    let layers = host
        .layers
        .iter()
        .map(|(layer, cycles)| (layer.as_str(), cycles.total()));
    let all: Vec<(&str, u64)> = layers.chain([(IDLE, host.idle_cycles)]).collect();
    let total: u64 = all.iter().map(|(_, cycles)| cycles).sum();
    let share =
        |(layer, cycles): (&str, u64)| (layer.to_owned(), 100.0 * cycles as f64 / total as f64);
    match total {
        0 => BTreeMap::new(),
        _ => all.into_iter().map(share).collect(),
    }
}

/// Reduces samples to at most `most`. Each stands for several in a row: it is the last of them, with the maximum queue of all.
pub fn thinned(samples: &[Sample], most: usize) -> Vec<Sample> {
    let step = samples.len().div_ceil(most).max(1);
    let of_several = |several: &[Sample]| {
        let last = several.last()?;
        Some(Sample {
            qlen: several.iter().map(|sample| sample.qlen).max()?,
            unanswered: several.iter().map(|sample| sample.unanswered).max()?,
            ..*last
        })
    };
    samples.chunks(step).filter_map(of_several).collect()
}

/// Returns samples in the form that pages need.
pub fn samples(samples: &[Sample]) -> Samples {
    let of = |value: fn(&Sample) -> u32| samples.iter().map(value).collect();
    let has_unanswered = samples.iter().any(|sample| sample.unanswered > 0);
    let unanswered = samples.iter().map(|sample| sample.unanswered);
    Samples {
        time_us: samples.iter().map(|sample| sample.time_us).collect(),
        open: of(|sample| sample.open),
        on_nic: of(|sample| sample.connections),
        soft_limit: of(|sample| sample.soft_limit),
        queue: of(|sample| sample.qlen),
        responses: samples.iter().map(|sample| sample.responses).collect(),
        unanswered: unanswered.filter(|_| has_unanswered).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_stand_for_others_show_the_longest_queue() {
        let sample = |number: u64| Sample {
            time_us: number,
            qlen: if number == 4 { 90 } else { 1 },
            responses: number,
            ..Sample::default()
        };
        let all: Vec<Sample> = (0..10).map(sample).collect();
        let few = thinned(&all, 3);
        let shown: Vec<(u64, u32)> = few
            .iter()
            .map(|sample| (sample.time_us, sample.qlen))
            .collect();
        assert_eq!(shown, [(3, 1), (7, 90), (9, 1)]);
        assert_eq!(thinned(&all, 10), all);
        assert!(thinned(&[], 10).is_empty());
    }
}

//! Estimates the response time of an open loop in the long run.

use super::clients::{Arrived, Section};
use crate::results::{NotSteady, ResponseTime, Sample};
use baton_stats::{Batch, Estimate, LEAST_PARTS, Mix, batches, is_trending, sectioned, warm_up};

/// The load counts as more than can be served if this share of the arrived requests is lost, or is added to those in progress.
pub(super) const SATURATED: f64 = 0.02;
/// Minimum number of responses beyond a percentile.
const BEYOND: f64 = 10.0;

/// Reports whether more is offered than can be served; `samples` are those of the measured part.
pub(super) fn is_saturated(arrived: &Arrived, samples: &[Sample]) -> bool {
    let most = SATURATED * arrived.requests() as f64;
    arrived.lost_share() > SATURATED || growth(samples).is_some_and(|growth| growth > most)
}

/// Returns how many more requests were in progress on average in the last quarter than in the first, or `None` if there are too few
/// samples.
fn growth(samples: &[Sample]) -> Option<f64> {
    let mean = |samples: &[Sample]| {
        let unanswered = samples.iter().map(|sample| sample.unanswered as f64);
        unanswered.sum::<f64>() / samples.len() as f64
    };
    let quarter = samples.len() / 4;
    let last = &samples[samples.len() - quarter..];
    (quarter > 0).then(|| mean(last) - mean(&samples[..quarter]))
}

/// Returns the response time, and the reasons why it may not hold.
pub(super) fn response_time(sections: &[Section]) -> (Option<ResponseTime>, Vec<NotSteady>) {
    let mean = |section: &Section| section.sum / section.count as f64;
    let means: Vec<f64> = sections.iter().map(mean).collect();
    let cut = warm_up(&means);
    let mut doubts = Vec::new();
    if sections.len() >= LEAST_PARTS && 2 * cut + 1 >= sections.len() {
        doubts.push(NotSteady::StillWarmingUp);
    }
    let sections = &sections[cut..];
    let parts: Vec<Batch> = sections.iter().map(batch).collect();
    let Some((each, independent)) = batches(&parts, Mix::default()) else {
        doubts.push(NotSteady::TooShort);
        return (None, doubts);
    };
    if is_trending(&each.residuals) {
        doubts.push(NotSteady::Trend);
    }
    if !independent {
        doubts.push(NotSteady::BatchesDepend);
    }
    let most = each.residuals.len();
    let percentile = |share| percentile(sections, most, share);
    let time = ResponseTime {
        mean: each.mean.times(1e3),
        p50: percentile(0.5),
        p90: percentile(0.9),
        p99: percentile(0.99),
        p999: percentile(0.999),
    };
    (Some(time), doubts)
}

fn batch(section: &Section) -> Batch {
    Batch {
        requests: section.count as f64,
        value: section.sum,
        ..Batch::default()
    }
}

/// Returns the time that this share of the responses did not exceed, ms, with an interval from at most `most` sections.
fn percentile(sections: &[Section], most: usize, share: f64) -> Option<Estimate> {
    let whole = Section::joined(sections);
    let beyond = whole.count as f64 * (1.0 - share);
    if beyond < BEYOND {
        return None;
    }
    let count = most.min((beyond / BEYOND) as usize);
    let edge = |n: usize| n * sections.len() / count;
    let of = |section: &Section| 1e3 * section.delays.quantile(share);
    let parts: Vec<f64> = (0..count)
        .map(|n| of(&Section::joined(&sections[edge(n)..edge(n + 1)])))
        .collect();
    Some(sectioned(of(&whole), &parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(unanswered: impl Iterator<Item = u64>) -> Vec<Sample> {
        let sample = |unanswered| Sample {
            unanswered,
            ..Sample::default()
        };
        unanswered.map(sample).collect()
    }

    #[test]
    fn a_growing_backlog_is_detected() {
        assert_eq!(growth(&samples(0..400)), Some(300.0));
        let steady = growth(&samples((0..400).map(|n| n % 7))).expect("enough samples");
        assert!(steady.abs() < 1.0, "{steady}");
        assert_eq!(growth(&samples((0..400).map(|n| 400 - n))), Some(-300.0));
        // The number may fall temporarily, because connections have several requests at once.
        let jumps = samples((0..8).map(|n| [0, 40, 30, 80, 70, 120, 110, 160][n]));
        assert_eq!(growth(&jumps), Some(115.0));
        assert_eq!(growth(&samples(0..3)), None);
    }

    #[test]
    fn percentiles_are_estimated_only_with_responses_beyond_them() {
        let section = |n: u64| {
            let mut section = Section::default();
            for delay in 0..200 {
                let span = baton_wire::Span::from_ms(1 + (delay * 7 + n) % 200);
                section.delays.record(span);
                section.count += 1;
                section.sum += span.as_secs_f64();
            }
            section
        };
        let sections: Vec<Section> = (0..32).map(section).collect();
        let (time, doubts) = response_time(&sections);
        let time = time.expect("long enough");
        assert_eq!(doubts, []);
        assert!((time.mean.mean - 100.5).abs() < 1e-9);
        let p50 = time.p50.expect("3,200 beyond");
        assert!((p50.mean / 100.0 - 1.0).abs() < 0.01 && p50.half_width.is_some());
        assert_eq!(
            time.p99.expect("64 beyond").half_width,
            None,
            "six sections at most"
        );
        assert_eq!(time.p999, None, "6.4 beyond");
        assert_eq!(
            response_time(&sections[..7]),
            (None, vec![NotSteady::TooShort])
        );
    }
}

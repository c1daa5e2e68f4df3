//! Distributions of sizes and counts.

use super::ratio;
use serde::Serialize;

/// The percentiles that are reported.
const PERCENT: [u64; 8] = [5, 10, 25, 50, 75, 90, 95, 99];

/// A distribution of integers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sizes {
    /// Number of values.
    pub count: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Smallest value, 0 if there are no values.
    pub min: u64,
    /// Largest value, 0 if there are no values.
    pub max: u64,
    /// Percentiles by nearest rank.
    pub percentiles: Vec<Percentile>,
    /// Counts by power of two.
    pub histogram: Vec<HistogramBucket>,
}

/// A percentile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Percentile {
    /// This percentage of the values is at most `value`.
    pub percent: u64,
    /// The value.
    pub value: u64,
}

/// A bucket of a histogram by power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HistogramBucket {
    /// Smallest value of the bucket: 0 for the bucket that holds only 0, otherwise a power of two.
    pub from: u64,
    /// Largest value of the bucket, inclusive.
    pub to: u64,
    /// Number of values.
    pub count: u64,
}

impl Sizes {
    /// Computes the distribution of `values`.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let sum = values.iter().sum();
        let value = |percent| Percentile {
            percent,
            value: percentile(&values, percent),
        };
        Self {
            count: values.len() as u64,
            mean: ratio(sum, values.len() as u64),
            min: values.first().copied().unwrap_or(0),
            max: values.last().copied().unwrap_or(0),
            percentiles: PERCENT.map(value).into(),
            histogram: histogram(&values),
        }
    }

    /// Returns the value that `percent` percent of the values do not exceed, if it was computed.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        self.percentiles
            .iter()
            .find(|p| p.percent == percent)
            .map(|p| p.value)
    }
}

/// Returns a percentile of sorted values by nearest rank, or 0 if there are no values.
fn percentile(sorted: &[u64], percent: u64) -> u64 {
    let rank = (sorted.len() as u64 * percent).div_ceil(100) as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Counts values by power of two: bucket 0 holds zeros, bucket `k` holds `2^(k-1)` to `2^k - 1`. Empty buckets at both ends are omitted.
fn histogram(sorted: &[u64]) -> Vec<HistogramBucket> {
    let bucket = |value: u64| (u64::BITS - value.leading_zeros()) as usize;
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
        return Vec::new();
    };
    let mut counts = vec![0; bucket(max) + 1];
    for &value in sorted {
        counts[bucket(value)] += 1;
    }
    let bounds = |k: usize| {
        if k == 0 {
            (0, 0)
        } else {
            (1 << (k - 1), u64::MAX >> (u64::BITS as usize - k))
        }
    };
    let all = counts.into_iter().enumerate().map(|(k, count)| {
        let (from, to) = bounds(k);
        HistogramBucket { from, to, count }
    });
    all.skip(bucket(min)).collect()
}

//! Distributions of sizes and counts.

use super::ratio;
use serde::Serialize;

/// The percentiles that are given.
const PERCENT: [u64; 8] = [5, 10, 25, 50, 75, 90, 95, 99];

/// A distribution of whole numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sizes {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Smallest, 0 if there is none.
    pub min: u64,
    /// Largest, 0 if there is none.
    pub max: u64,
    /// Percentiles by nearest rank.
    pub percentiles: Vec<Percentile>,
    /// Counts by power of two.
    pub histogram: Vec<HistogramBucket>,
}

/// A percentile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Percentile {
    /// So many percent of the values are at most `value`.
    pub percent: u64,
    /// The value.
    pub value: u64,
}

/// A bucket of a histogram by power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HistogramBucket {
    /// Values in the bucket are from this (0 only, in the first; else a power of two)...
    pub from: u64,
    /// ...to this, inclusive.
    pub to: u64,
    /// How many values.
    pub count: u64,
}

impl Sizes {
    /// The distribution of `values`.
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

    /// The value that so many percent of the values are at most, if it is one of those kept.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        self.percentiles
            .iter()
            .find(|p| p.percent == percent)
            .map(|p| p.value)
    }
}

/// The percentile of sorted values by nearest rank, 0 if there is none.
fn percentile(sorted: &[u64], percent: u64) -> u64 {
    let rank = (sorted.len() as u64 * percent).div_ceil(100) as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Bucket 0 holds zeros, bucket `k` holds `2^(k-1)` to `2^k - 1`. Empty buckets at both ends are left out.
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

//! Distributions of sizes and counts.

use super::ratio;
use serde::Serialize;

/// The shares at which quantiles are given.
const SHARES: [f64; 9] = [0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999];

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
    /// Quantiles by nearest rank.
    pub quantiles: Vec<Quantile>,
    /// Counts by power of two.
    pub histogram: Vec<HistogramBucket>,
}

/// A quantile.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantile {
    /// The share of values that are at most `value`, 0 to 1.
    pub share: f64,
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
        let quantiles = SHARES.map(|share| Quantile {
            share,
            value: quantile(&values, share),
        });
        Self {
            count: values.len() as u64,
            mean: ratio(sum, values.len() as u64),
            min: values.first().copied().unwrap_or(0),
            max: values.last().copied().unwrap_or(0),
            quantiles: quantiles.into(),
            histogram: histogram(&values),
        }
    }

    /// The value that this share of values is at most, if it is one of the shares kept.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        self.quantiles
            .iter()
            .find(|q| q.share == share)
            .map(|q| q.value)
    }
}

/// The quantile of sorted values by nearest rank, 0 if there is none.
pub(super) fn quantile(sorted: &[u64], share: f64) -> u64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
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

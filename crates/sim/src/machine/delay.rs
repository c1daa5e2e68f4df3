//! Distributions of times, kept in logarithmic buckets.

use crate::results::Distribution;
use baton_wire::Span;
use hdrhistogram::Histogram;

/// Longer times count as this long: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Times in nanoseconds, three significant digits.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    histogram: Histogram<u64>,
}

impl Default for Delays {
    fn default() -> Self {
        Self::new()
    }
}

impl Delays {
    pub(super) fn new() -> Self {
        Self {
            histogram: Histogram::new_with_max(LONGEST_NS, 3).expect("the bounds are valid"),
        }
    }

    /// The times of all `parts`.
    pub(super) fn joined<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut whole = Self::new();
        for part in parts {
            whole
                .histogram
                .add(&part.histogram)
                .expect("all have the same bounds");
        }
        whole
    }

    #[inline]
    pub(super) fn record(&mut self, span: Span) {
        self.histogram.saturating_record(span.as_ps() / 1_000);
    }

    pub(super) fn clear(&mut self) {
        self.histogram.clear();
    }

    /// The value that this share of them does not exceed, seconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share) as f64 / 1e9
    }

    /// The distribution, in units of `unit_ns` nanoseconds.
    pub(super) fn distribution(&self, unit_ns: f64) -> Distribution {
        let at = |quantile: f64| self.histogram.value_at_quantile(quantile) as f64 / unit_ns;
        Distribution {
            count: self.histogram.len(),
            mean: self.histogram.mean() / unit_ns,
            p50: at(0.50),
            p90: at(0.90),
            p99: at(0.99),
            p999: at(0.999),
            max: self.histogram.max() as f64 / unit_ns,
        }
    }
}

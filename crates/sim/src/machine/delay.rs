//! Distributions of times, kept in logarithmic buckets.

use crate::results::Distribution;
use baton_wire::Span;
use hdrhistogram::Histogram;

/// Longest time that is recorded, an hour; longer times count as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Times in nanoseconds, to three significant digits.
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

    /// Returns the times of all `parts`.
    pub(super) fn joined<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut whole = Self::new();
        for part in parts {
            whole
                .histogram
                .add(&part.histogram)
                .expect("all histograms have the same bounds");
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

    /// Returns the value that this share of the times does not exceed, seconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share) as f64 / 1e9
    }

    /// Returns the distribution, in units of `unit_ns` nanoseconds. A quantile is included only if there are enough times that one of them
    /// is expected beyond it.
    pub(super) fn distribution(&self, unit_ns: f64) -> Distribution {
        let count = self.histogram.len();
        let of_many = |least: u64, value: f64| (count >= least).then(|| value / unit_ns);
        let at = |least, quantile| {
            let value = self.histogram.value_at_quantile(quantile);
            of_many(least, value as f64)
        };
        Distribution {
            count,
            mean: of_many(1, self.histogram.mean()),
            p50: at(2, 0.50),
            p90: at(10, 0.90),
            p99: at(100, 0.99),
            p999: at(1000, 0.999),
            max: of_many(1, self.histogram.max() as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_times_have_no_quantiles() {
        let mut delays = Delays::new();
        assert_eq!(delays.distribution(1e3), Distribution::default());
        let mut of = |count: u64| {
            while delays.histogram.len() < count {
                delays.record(Span::from_us(7));
            }
            let found = delays.distribution(1e3);
            [found.mean, found.p50, found.p90, found.p99, found.p999].map(|value| value.is_some())
        };
        assert_eq!(of(1), [true, false, false, false, false]);
        assert_eq!(of(99), [true, true, true, false, false]);
        assert_eq!(of(999), [true, true, true, true, false]);
        assert_eq!(of(1000), [true; 5]);
    }
}

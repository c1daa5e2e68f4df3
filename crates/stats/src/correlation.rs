//! Correlation of two measures of the same things.

use serde::Serialize;
use statrs::statistics::{Data, OrderStatistics, RankTieBreaker, Statistics};

/// Smallest spread, as a share of the mean, at which the correlation of values is meaningful.
pub const LEAST_SPREAD: f64 = 0.01;

/// Correlation of two measures, with the number of things that were measured. It means little if that number is small.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correlation {
    /// Number of things that were measured.
    pub n: usize,
    /// Pearson's r, -1 to 1: how well a line fits. `None` if the values of a measure hardly differ ([`LEAST_SPREAD`]).
    pub pearson: Option<f64>,
    /// Spearman's rho, -1 to 1: Pearson's r of the ranks, with averaged ranks for equal values. `None` in the same cases.
    pub spearman: Option<f64>,
}

impl Correlation {
    /// Computes the correlation of `x` and `y`, which measure the same things in the same order.
    ///
    /// # Panics
    /// If `x` and `y` differ in length.
    pub fn of(x: &[f64], y: &[f64]) -> Self {
        assert_eq!(x.len(), y.len(), "both lists have the same length");
        let says_something =
            x.len() > 2 && [x, y].iter().all(|values| spread(values) >= LEAST_SPREAD);
        let when = |r: fn(&[f64], &[f64]) -> f64| says_something.then(|| r(x, y));
        Self {
            n: x.len(),
            pearson: when(pearson),
            spearman: when(|x, y| pearson(&ranks(x), &ranks(y))),
        }
    }
}

/// Returns the range of `values` as a share of their mean.
pub fn spread(values: &[f64]) -> f64 {
    let range = values.max() - values.min();
    if range == 0.0 {
        return 0.0;
    }
    range / values.mean().abs()
}

fn pearson(x: &[f64], y: &[f64]) -> f64 {
    x.covariance(y) / (x.std_dev() * y.std_dev())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    Data::new(values.to_vec()).ranks(RankTieBreaker::Average)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() < 1e-12)
    }

    /// Reference values of scipy 1.17.1: `scipy.stats.pearsonr(x, y)[0]`, `scipy.stats.spearmanr(x, y)[0]`.
    #[test]
    fn correlations_agree_with_a_reference() {
        let cases: [(&[f64], &[f64], f64, f64); 3] = [
            (
                &[957.1, 955.0, 948.2, 930.0, 610.5, 700.25],
                &[112.0, 118.5, 60.1, 75.3, 88.8, 22.4],
                0.426_377_374_687_327_45,
                0.542_857_142_857_142_9,
            ),
            // Some values are equal.
            (
                &[1.0, 2.0, 2.0, 3.0, 5.0, 5.0],
                &[10.0, 20.0, 25.0, 25.0, 30.0, 12.0],
                0.286_870_759_797_417_8,
                0.492_592_183_071_889,
            ),
            (
                &[-2.0, -1.5, 0.25, 3.0, 8.0],
                &[9.0, 4.5, 1.0, -3.5, -40.0],
                -0.961_119_360_480_709_8,
                -1.0,
            ),
        ];
        for (x, y, pearson, spearman) in cases {
            let found = Correlation::of(x, y);
            assert_eq!(found.n, x.len());
            assert!(is(found.pearson, pearson), "{found:?}");
            assert!(is(found.spearman, spearman), "{found:?}");
        }
    }

    #[test]
    fn values_that_hardly_differ_have_no_correlation() {
        let nothing = |n| Correlation {
            n,
            pearson: None,
            spearman: None,
        };
        let (flat, steep) = ([957.0, 956.0, 955.0], [1.0, 2.0, 3.0]);
        assert_eq!(Correlation::of(&flat, &steep), nothing(3));
        assert_eq!(Correlation::of(&steep, &flat), nothing(3));
        assert_eq!(
            Correlation::of(&[1.0, 2.0], &[5.0, 9.0]),
            nothing(2),
            "of two it is always 1"
        );
        assert_eq!(Correlation::of(&[], &[]), nothing(0));
    }
}

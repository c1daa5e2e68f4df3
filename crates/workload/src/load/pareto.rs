//! Pareto distributions, which are heavy-tailed.

use super::unit;
use rand_pcg::Pcg64;

/// Limit of all values, seconds: about thirty years.
const LONGEST: f64 = 1e9;

/// A Pareto distribution with this mean; the share of values over `x` falls as `x^-shape`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pareto {
    mean: f64,
    shape: f64,
}

impl Pareto {
    /// Creates a distribution; `shape` must be over 1, since otherwise there is no mean.
    pub(super) fn new(mean: f64, shape: f64) -> Self {
        debug_assert!(shape > 1.0, "a mean");
        Self { mean, shape }
    }

    /// Returns the smallest value.
    fn least(&self) -> f64 {
        self.mean * (self.shape - 1.0) / self.shape
    }

    pub(super) fn sample(&self, random: &mut Pcg64) -> f64 {
        (self.least() * libm::pow(unit(random), -1.0 / self.shape)).min(LONGEST)
    }

    /// Draws the remainder of a value at a random moment, for a process that has been running forever.
    pub(super) fn sample_rest(&self, random: &mut Pcg64) -> f64 {
        let (over, shape) = (unit(random), self.shape);
        let rest = if over > 1.0 / shape {
            self.mean * (1.0 - over)
        } else {
            self.least() * libm::pow(over * shape, -1.0 / (shape - 1.0))
        };
        rest.min(LONGEST)
    }
}

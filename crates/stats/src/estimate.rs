//! Means with confidence intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` if the error cannot be estimated, for example from a single run.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Creates an estimate without an interval.
    pub const fn of_one(mean: f64) -> Self {
        Self {
            mean,
            half_width: None,
        }
    }

    /// Estimates the mean of independent values. Returns `None` if there are no values.
    pub fn of_independent(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        match values.len() {
            0 => None,
            1 => Some(Self::of_one(mean)),
            _ => {
                let freedom = count - 1.0;
                let squares = values.iter().map(|value| (value - mean).powi(2));
                let variance = squares.sum::<f64>() / freedom;
                Some(Self {
                    mean,
                    half_width: Some(student(freedom) * (variance / count).sqrt()),
                })
            }
        }
    }

    /// Estimates the difference between `others` and `these`, pair by pair, per cent of the mean of `these`. Influences that both have in
    /// common, such as the same requests, do not widen the interval. Returns `None` if there are no pairs, or if the mean of `these` is 0.
    pub fn of_difference_percent(these: &[f64], others: &[f64]) -> Option<Self> {
        let pairs = these.iter().zip(others);
        let differences: Vec<f64> = pairs.map(|(this, other)| other - this).collect();
        let base = Self::of_independent(&these[..differences.len()])?.mean;
        let difference = Self::of_independent(&differences)?;
        (base != 0.0).then(|| difference.times(100.0 / base.abs()))
    }

    /// Estimates the difference between `other` and this estimate, per cent of this one. Both must be independent of each other. Returns
    /// `None` if this mean is 0.
    pub fn difference_percent(self, other: Self) -> Option<Self> {
        let ratio = other.mean / self.mean;
        let errors = self.half_width.zip(other.half_width);
        let half_width =
            errors.map(|(of_this, of_other)| ((ratio * of_this).powi(2) + of_other.powi(2)).sqrt());
        (self.mean != 0.0).then(|| Self {
            mean: 100.0 * (ratio - 1.0),
            half_width: half_width.map(|half| 100.0 * half / self.mean.abs()),
        })
    }

    /// Converts the estimate to another unit.
    pub fn times(self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            half_width: self.half_width.map(|half| half * factor.abs()),
        }
    }

    /// Returns half of the interval's width as a share of the mean, or `None` if there is no interval or the mean is 0.
    pub fn relative(&self) -> Option<f64> {
        let half_width = self.half_width?;
        (self.mean != 0.0).then(|| half_width / self.mean.abs())
    }

    /// Returns whether a value lies in the interval.
    pub fn covers(&self, value: f64) -> bool {
        self.half_width
            .is_some_and(|half| (value - self.mean).abs() <= half)
    }
}

/// Returns Student's t for a two-sided interval of 95 %.
pub(crate) fn student(freedom: f64) -> f64 {
    quantile(freedom, 0.975)
}

/// Returns a quantile of Student's t distribution; infinity without degrees of freedom. The result is rounded because logarithms differ in
/// their last bits between machines, and results must not.
pub(crate) fn quantile(freedom: f64, at: f64) -> f64 {
    const ROUND: f64 = 1e9;
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| {
        (t.inverse_cdf(at) * ROUND).round() / ROUND
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_student_s() {
        let estimate = Estimate::of_independent(&[9.0, 10.0, 11.0]).unwrap();
        assert_eq!(estimate.mean, 10.0);
        let half_width = estimate.half_width.unwrap();
        assert!((half_width - 4.302_653 / 3_f64.sqrt()).abs() < 1e-6);
        assert!(estimate.covers(12.4) && !estimate.covers(12.5));
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        let one = Estimate::of_independent(&[7.0]);
        assert_eq!(one, Some(Estimate::of_one(7.0)));
        assert_eq!(one.unwrap().relative(), None);
        assert_eq!(Estimate::of_independent(&[]), None);
    }

    #[test]
    fn common_variation_does_not_widen_the_interval_of_a_difference() {
        let these = [100.0, 200.0, 300.0];
        let others = these.map(|value| value + 10.0);
        let difference = Estimate::of_difference_percent(&these, &others).unwrap();
        assert_eq!(difference.mean, 5.0);
        assert!(difference.half_width.unwrap() < 1e-12);
        let apart = Estimate::of_independent(&these).unwrap();
        let apart = apart.difference_percent(Estimate::of_independent(&others).unwrap());
        assert!(
            (apart.unwrap().mean - 5.0).abs() < 1e-9 && apart.unwrap().half_width > Some(100.0)
        );
        assert_eq!(
            Estimate::of_one(0.0).difference_percent(Estimate::of_one(1.0)),
            None
        );
        assert_eq!(Estimate::of_difference_percent(&[], &[]), None);
        assert_eq!(Estimate::of_difference_percent(&[0.0], &[1.0]), None);
    }
}

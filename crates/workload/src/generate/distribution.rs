//! Distributions that a specification can name, implemented by their inverse, which maps the share of smaller values to a value.
//!
//! The mathematical functions are those of `libm`, in software, so that a seed gives the same log on every machine.

use super::SpecError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of positive numbers: sizes in bytes, requests per connection, seconds, requests between references.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// Always this value.
    Constant(f64),
    /// Values with their shares, in ascending order of value; the shares add up to 1.
    Steps(Vec<Step>),
    /// Log-normal, cut at `max`.
    LogNormal {
        /// Half of the values are below.
        median: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// Larger values become this.
        max: f64,
    },
    /// Log-normal body with a Pareto tail that begins where the body has `tail_share` of the values left.
    LogNormalPareto {
        /// Median of the body.
        median: f64,
        /// Standard deviation of the body's natural logarithm.
        sigma: f64,
        /// Share of values in the tail, 0 to 1.
        tail_share: f64,
        /// In the tail, the share of values over `x` falls as `x^-tail_exponent`.
        tail_exponent: f64,
        /// Larger values become this.
        max: f64,
    },
}

/// A value and the share of values that are (about) equal to it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Share of all values, 0 to 1.
    pub share: f64,
    /// The value.
    pub value: f64,
}

impl Distribution {
    /// Returns the value below which a share `u` of all values lies; `u` is at least 0 and less than 1.
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Steps(steps) => step_at(steps, u),
            &Self::LogNormal { median, sigma, max } => log_normal(median, sigma, u).min(max),
            &Self::LogNormalPareto {
                median,
                sigma,
                tail_share,
                tail_exponent,
                max,
            } => {
                let body_share = 1.0 - tail_share;
                if u < body_share {
                    log_normal(median, sigma, u).min(max)
                } else {
                    let start = log_normal(median, sigma, body_share);
                    (start * libm::pow((1.0 - u) / tail_share, -1.0 / tail_exponent)).min(max)
                }
            }
        }
    }

    /// Checks the parameters; `field` is the name of the distribution in errors.
    pub(super) fn check(&self, field: &str) -> Result<(), SpecError> {
        let positive = |name: &str, value: f64| {
            let ok = value.is_finite() && value > 0.0;
            SpecError::unless(ok, || format!("{field}.{name}"), value, "a number above 0")
        };
        let not_negative = |name: &str, value: f64| {
            let ok = value.is_finite() && value >= 0.0;
            SpecError::unless(
                ok,
                || format!("{field}.{name}"),
                value,
                "a number of at least 0",
            )
        };
        match self {
            Self::Constant(value) => not_negative("constant", *value),
            Self::Steps(steps) => {
                for step in steps {
                    not_negative("steps.share", step.share)?;
                    not_negative("steps.value", step.value)?;
                }
                let sum: f64 = steps.iter().map(|s| s.share).sum();
                let ok = (sum - 1.0).abs() < 1e-3;
                SpecError::unless(ok, || format!("sum of {field}.steps.share"), sum, "1")
            }
            Self::LogNormal { median, sigma, max } => {
                positive("log-normal.median", *median)?;
                not_negative("log-normal.sigma", *sigma)?;
                positive("log-normal.max", *max)
            }
            Self::LogNormalPareto {
                median,
                sigma,
                tail_share,
                tail_exponent,
                max,
            } => {
                positive("log-normal-pareto.median", *median)?;
                not_negative("log-normal-pareto.sigma", *sigma)?;
                let ok = *tail_share > 0.0 && *tail_share < 1.0;
                let name = || format!("{field}.log-normal-pareto.tail_share");
                SpecError::unless(ok, name, *tail_share, "a number between 0 and 1")?;
                positive("log-normal-pareto.tail_exponent", *tail_exponent)?;
                positive("log-normal-pareto.max", *max)
            }
        }
    }
}

fn step_at(steps: &[Step], u: f64) -> f64 {
    let mut below = 0.0;
    for step in steps {
        below += step.share;
        if u < below {
            return step.value;
        }
    }
    steps.last().map_or(0.0, |s| s.value)
}

fn log_normal(median: f64, sigma: f64, u: f64) -> f64 {
    median * libm::exp(sigma * normal(u))
}

/// Computes the inverse of the standard normal distribution by P. J. Acklam's rational approximation, with a relative error below 1.2e-9.
fn normal(u: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// The central approximation is valid at least this far from both ends.
    const TAIL: f64 = 0.02425;

    let u = u.clamp(1e-15, 1.0 - 1e-15);
    if u < TAIL {
        let q = libm::sqrt(-2.0 * libm::log(u));
        polynomial(&C, q) / polynomial(&D, q)
    } else if u > 1.0 - TAIL {
        -normal(1.0 - u)
    } else {
        let q = u - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / polynomial(&B, r)
    }
}

/// Evaluates a polynomial by Horner's rule, highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles() {
        for (u, z) in [
            (0.5, 0.0),
            (0.841_344_746, 1.0),
            (0.977_249_868, 2.0),
            (0.001_349_898, -3.0),
            (0.9, 1.281_551_566),
        ] {
            assert!((normal(u) - z).abs() < 1e-6, "{u}: {}", normal(u));
        }
    }

    #[test]
    fn quantiles_rise_and_join() {
        let all = [
            Distribution::Constant(5.0),
            Distribution::Steps(vec![
                Step {
                    share: 0.25,
                    value: 1.0,
                },
                Step {
                    share: 0.75,
                    value: 9.0,
                },
            ]),
            Distribution::LogNormal {
                median: 100.0,
                sigma: 1.5,
                max: 1e5,
            },
            Distribution::LogNormalPareto {
                median: 100.0,
                sigma: 1.0,
                tail_share: 0.07,
                tail_exponent: 1.1,
                max: 1e6,
            },
        ];
        for distribution in all {
            distribution.check("x").unwrap();
            let values: Vec<f64> = (0..10_000)
                .map(|i| distribution.quantile(f64::from(i) / 10_000.0))
                .collect();
            assert!(values.is_sorted(), "{distribution:?}");
            // At 93 %, the Pareto tail joins the body without a jump.
            let body_end = &values[9_290..9_310];
            let jumps = body_end
                .windows(2)
                .filter(|pair| pair[1] > 1.01 * pair[0])
                .count();
            assert_eq!(jumps, 0, "{distribution:?}");
        }
        let steps = Distribution::Steps(vec![
            Step {
                share: 0.25,
                value: 1.0,
            },
            Step {
                share: 0.75,
                value: 9.0,
            },
        ]);
        assert_eq!(
            (
                steps.quantile(0.2499),
                steps.quantile(0.25),
                steps.quantile(0.9999)
            ),
            (1.0, 9.0, 9.0)
        );
    }

    #[test]
    fn impossible_parameters_are_named() {
        let bad = Distribution::LogNormal {
            median: -1.0,
            sigma: 1.0,
            max: 10.0,
        };
        let error = bad.check("files.size").unwrap_err().to_string();
        assert_eq!(
            error,
            "files.size.log-normal.median is -1; expected a number above 0"
        );
        assert!(
            Distribution::Steps(vec![Step {
                share: 0.5,
                value: 1.0
            }])
            .check("x")
            .is_err()
        );
    }
}

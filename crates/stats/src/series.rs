//! Tests whether the parts of a run depend on each other, or on time.

use crate::estimate::quantile;

/// Returns whether adjacent values of a series are more alike than chance makes them in one of twenty cases (von Neumann's ratio,
/// by the correlation of each value with the next).
pub fn is_correlated(series: &[f64]) -> bool {
    let count = series.len() as f64;
    let mean = series.iter().sum::<f64>() / count;
    let squares: f64 = series.iter().map(|value| (value - mean).powi(2)).sum();
    let products = series
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    products.sum::<f64>() > 1.645 / count.sqrt() * squares
}

/// Returns whether a series grows or falls more than chance makes it in one of a hundred cases (the slope of its regression on time).
pub fn is_trending(series: &[f64]) -> bool {
    if series.len() < 3 {
        return false;
    }
    let count = series.len() as f64;
    let (mean, middle) = (series.iter().sum::<f64>() / count, (count - 1.0) / 2.0);
    let times = || (0..series.len()).map(|n| n as f64 - middle);
    let products: f64 = times()
        .zip(series)
        .map(|(time, value)| time * (value - mean))
        .sum();
    let spread: f64 = times().map(|time| time * time).sum();
    let slope = products / spread;
    let rest: f64 = times()
        .zip(series)
        .map(|(time, value)| (value - mean - slope * time).powi(2))
        .sum();
    let freedom = count - 2.0;
    let error = (rest / freedom / spread).sqrt();
    slope.abs() > quantile(freedom, 0.995) * error
}

/// Share of the larger of two means by which they must differ for a series to drift.
const DRIFT: f64 = 0.1;

/// Minimum number of values in each quarter of a series that drifts.
const QUARTER: usize = 4;

/// Returns whether a series is on its way from one value to another: the means of its quarters only rise or only fall, in total by more
/// than `least`, a tenth, and three times what the variance within the quarters explains. Unlike [`is_trending`], it does not assume that
/// adjacent values are independent. A short series does not drift.
pub fn is_drifting(series: &[f64], least: f64) -> bool {
    let size = series.len() / 4;
    if size < QUARTER {
        return false;
    }
    let quarters = series[series.len() - 4 * size..].chunks_exact(size);
    let mean = |quarter: &[f64]| quarter.iter().sum::<f64>() / size as f64;
    let means: Vec<f64> = quarters.clone().map(mean).collect();
    let squares = quarters.zip(&means).map(|(quarter, mean)| {
        let squares = quarter.iter().map(|value| (value - mean).powi(2));
        squares.sum::<f64>()
    });
    let variance = squares.sum::<f64>() / (4 * (size - 1)) as f64;
    let chance = 3.0 * (2.0 * variance / size as f64).sqrt();
    let steps: Vec<f64> = means.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let is_one_way = steps.iter().all(|step| *step > 0.0) || steps.iter().all(|step| *step < 0.0);
    let (first, last) = (means[0], means[3]);
    is_one_way && (last - first).abs() > least.max(chance).max(DRIFT * first.max(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// Returns how many of a thousand random series the test reports.
    fn found(test: impl Fn(&[f64]) -> bool) -> usize {
        let mut random = Pcg64::seed_from_u64(7);
        let mut series = || -> Vec<f64> { (0..32).map(|_| random.random()).collect() };
        (0..1000).filter(|_| test(&series())).count()
    }

    #[test]
    fn random_series_are_rejected_as_often_as_the_level_allows() {
        let (correlated, trending) = (found(is_correlated), found(is_trending));
        assert!((20..70).contains(&correlated), "{correlated}");
        assert!((2..25).contains(&trending), "{trending}");
    }

    #[test]
    fn a_series_drifts_while_it_settles() {
        let settling = |from: usize, to: usize| -> Vec<f64> {
            let value = |n: usize| 50.0 + 100.0 * (-(n as f64) / 40.0).exp() + (n % 3) as f64;
            (from..to).map(value).collect()
        };
        assert!(is_drifting(&settling(0, 100), 5.0) && is_drifting(&settling(20, 60), 5.0));
        assert!(!is_drifting(&settling(200, 400), 5.0), "it has settled");
        assert!(!is_drifting(&settling(0, 100), 200.0), "less than counts");
        assert!(!is_drifting(&[1.0, 2.0, 3.0], 0.0), "too few values");
        let rising: Vec<f64> = settling(0, 100)
            .iter()
            .map(|value| -value + 200.0)
            .collect();
        assert!(is_drifting(&rising, 5.0));
        assert!(found(|series| is_drifting(series, 0.0)) < 10);
    }

    #[test]
    fn a_wave_is_correlated_and_a_slope_trends() {
        let wave: Vec<f64> = (0..32).map(|n| (f64::from(n) / 3.0).sin()).collect();
        assert!(is_correlated(&wave) && !is_trending(&[]));
        let slope: Vec<f64> = (0..32).map(|n| f64::from(n) + f64::from(n % 5)).collect();
        assert!(is_trending(&slope));
    }
}

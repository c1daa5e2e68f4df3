//! Detection of the warm-up of a run.

/// Returns the number of points at the start of `series` that belong to the warm-up, by MSER (White, *An effective truncation heuristic for
/// bias reduction in simulation output*, 1997): without them, the standard error is smallest. Each point should be the mean of at least
/// five observations (MSER-5). At most half of the points are cut; a result of half means that the run was too short to decide.
pub fn warm_up(series: &[f64]) -> usize {
    let most = series.len() / 2;
    // Goes backwards, with the mean and the sum of squares of the points from `cut` on.
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (cut, value) in series.iter().enumerate().rev() {
        let left = (series.len() - cut) as f64;
        let step = value - mean;
        mean += step / left;
        squares += step * (value - mean);
        let error = squares / (left * left);
        if cut <= most && error <= best.0 {
            best = (error, cut);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_transient_is_cut() {
        let series: Vec<f64> = (0..100)
            .map(|n| {
                let transient = if n < 20 { f64::from(20 - n) } else { 0.0 };
                transient + f64::from(n % 3)
            })
            .collect();
        let cut = warm_up(&series);
        assert!((17..=21).contains(&cut), "{cut}");
    }

    #[test]
    fn a_steady_series_is_kept() {
        let series: Vec<f64> = (0..90).map(|n| f64::from(n % 3)).collect();
        assert_eq!(warm_up(&series), 0);
        assert_eq!(warm_up(&[]), 0);
        assert_eq!(warm_up(&[4.0; 8]), 0);
    }

    #[test]
    fn a_series_that_never_settles_is_cut_by_half() {
        let series: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(warm_up(&series), 50);
    }

    proptest! {
        /// Compares the error after the cut with the least error of all cuts.
        #[test]
        fn the_cut_minimises_the_error_of_the_rest(series in prop::collection::vec(-9_i32..9, 1..60)) {
            let series: Vec<f64> = series.into_iter().map(f64::from).collect();
            let error = |cut: usize| {
                let left = &series[cut..];
                let mean = left.iter().sum::<f64>() / left.len() as f64;
                let squares: f64 = left.iter().map(|value| (value - mean).powi(2)).sum();
                squares / (left.len() * left.len()) as f64
            };
            let least = (0..=series.len() / 2).map(error).fold(f64::INFINITY, f64::min);
            prop_assert!(error(warm_up(&series)) <= least + 1e-9);
        }
    }
}

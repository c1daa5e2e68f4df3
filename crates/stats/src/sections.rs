//! Estimates of quantities that are not means, such as percentiles.

use crate::estimate::{Estimate, student};

/// Smallest number of parts of a run (batches or sections) that gives a meaningful interval.
pub const LEAST_PARTS: usize = 8;

/// Estimates a property of a run such as a percentile, from its value for the `whole` run and for each of several equal, independent
/// `sections` (sectioning: Asmussen and Glynn, *Stochastic Simulation*, III.5; Nakayama, *Confidence intervals for quantiles using
/// sectioning*, 2014). The mean over sections would have the bias of a short run; the value for the whole run has less. There is no
/// interval if there are too few sections.
pub fn sectioned(whole: f64, sections: &[f64]) -> Estimate {
    let count = sections.len() as f64;
    let squares = sections.iter().map(|section| (section - whole).powi(2));
    let error = (squares.sum::<f64>() / (count - 1.0) / count).sqrt();
    Estimate {
        mean: whole,
        half_width: (sections.len() >= LEAST_PARTS).then(|| student(count - 1.0) * error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Exp};
    use rand_pcg::Pcg64;

    /// Returns the value below which the given share lies.
    fn quantile(values: &[f64], share: f64) -> f64 {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        values[(share * values.len() as f64) as usize]
    }

    #[test]
    fn intervals_of_percentiles_have_the_promised_coverage() {
        let exponential = Exp::new(1.0).unwrap();
        for share in [0.5, 0.9, 0.99] {
            let truth = -f64::ln(1.0 - share);
            let covered = (0..300).filter(|&seed| {
                let mut random = Pcg64::seed_from_u64(seed);
                let run: Vec<f64> = (0..16_000)
                    .map(|_| exponential.sample(&mut random))
                    .collect();
                let sections: Vec<f64> =
                    run.chunks(1000).map(|part| quantile(part, share)).collect();
                sectioned(quantile(&run, share), &sections).covers(truth)
            });
            let covered = covered.count();
            assert!((273..=297).contains(&covered), "{share}: {covered} of 300");
        }
    }

    #[test]
    fn few_sections_give_no_interval() {
        assert_eq!(sectioned(3.0, &[3.0; 7]), Estimate::of_one(3.0));
        assert_eq!(sectioned(3.0, &[]), Estimate::of_one(3.0));
        assert_eq!(sectioned(3.0, &[3.0; 8]).half_width, Some(0.0));
    }
}

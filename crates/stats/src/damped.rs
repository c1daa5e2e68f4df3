//! Steps towards the minimum of a sum of squares (Levenberg and Marquardt).

/// Returns, for each constant, the step that would minimise the sum of the squares of `residuals` if the residuals were linear. `slopes`
/// has, for each constant, the increase of each residual when the constant grows by 1. `damping` limits the steps of constants that have
/// little effect on the residuals, as a share of that effect. Constants without any effect do not change.
pub fn damped_step(residuals: &[f64], slopes: &[Vec<f64>], damping: f64) -> Vec<f64> {
    let product = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum();
    let rows = slopes.iter().enumerate().map(|(number, slope)| {
        let mut row: Vec<f64> = slopes.iter().map(|other| product(slope, other)).collect();
        row[number] *= 1.0 + damping;
        row.push(-product(slope, residuals));
        row
    });
    solve(rows.collect())
}

/// Solves linear equations, each with its right side last. The matrix must be symmetric and positive semidefinite; such a matrix needs no
/// pivoting (Gauss and Jordan). Unknowns that the equations do not determine are 0.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    /// Share of its original value below which the remainder of a diagonal element counts as 0.
    const SINGULAR: f64 = 1e-12;
    let count = rows.len();
    let diagonal: Vec<f64> = (0..count).map(|n| rows[n][n]).collect();
    let mut is_determined = vec![false; count];
    for pivot in 0..count {
        let by = rows[pivot][pivot];
        if by <= SINGULAR * diagonal[pivot] || by <= 0.0 {
            continue;
        }
        is_determined[pivot] = true;
        rows[pivot].iter_mut().for_each(|cell| *cell /= by);
        let pivots = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(n, _)| *n != pivot) {
            let times = row[pivot];
            let cells = row.iter_mut().zip(&pivots);
            cells.for_each(|(cell, of_pivot)| *cell -= times * of_pivot);
        }
    }
    let solution = |n: usize| {
        if is_determined[n] {
            rows[n][count]
        } else {
            0.0
        }
    };
    (0..count).map(solution).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the residuals of a curve `a * exp(b * t)` through points of `2 * exp(-0.5 * t)`.
    fn residuals(constants: &[f64]) -> Vec<f64> {
        let curve = |a: f64, b: f64, t: f64| a * (b * t).exp();
        let times = (0..8).map(f64::from);
        times
            .map(|t| curve(constants[0], constants[1], t) - curve(2.0, -0.5, t))
            .collect()
    }

    fn slopes(constants: &[f64]) -> Vec<Vec<f64>> {
        let here = residuals(constants);
        let of = |number: usize| {
            let mut there = constants.to_vec();
            there[number] += 1e-6;
            let there = residuals(&there);
            there
                .iter()
                .zip(&here)
                .map(|(a, b)| (a - b) / 1e-6)
                .collect()
        };
        (0..constants.len()).map(of).collect()
    }

    #[test]
    fn steps_lead_to_the_least_squares() {
        let mut constants = vec![1.0, -0.1];
        for _ in 0..20 {
            let step = damped_step(&residuals(&constants), &slopes(&constants), 0.01);
            constants
                .iter_mut()
                .zip(step)
                .for_each(|(constant, step)| *constant += step);
        }
        assert!((constants[0] - 2.0).abs() < 1e-6, "{constants:?}");
        assert!((constants[1] + 0.5).abs() < 1e-6, "{constants:?}");
    }

    #[test]
    fn a_constant_without_influence_stays() {
        let step = damped_step(&[3.0, 4.0], &[vec![1.0, 0.0], vec![0.0, 0.0]], 0.0);
        assert_eq!(step, [-3.0, 0.0]);
        // Two constants with the same effect: one of them is enough.
        let step = damped_step(&[2.0], &[vec![1.0], vec![1.0]], 0.0);
        assert_eq!(step.iter().sum::<f64>(), -2.0);
    }
}

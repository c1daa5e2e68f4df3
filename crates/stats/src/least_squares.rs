//! Least squares with non-negative coefficients.

/// A linear combination of columns that best approximates the values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit<const N: usize> {
    /// Coefficient of each column; 0 for columns that are not used.
    pub(crate) coefficients: [f64; N],
    /// Inverse of the normal equations' matrix; 0 where a column is not used.
    inverse: [[f64; N]; N],
    /// Number of columns that are used.
    pub(crate) used: usize,
}

impl<const N: usize> Fit<N> {
    /// Returns the value of the sum at a row.
    pub(crate) fn at(&self, row: [f64; N]) -> f64 {
        (0..N).map(|n| self.coefficients[n] * row[n]).sum()
    }

    /// Returns the squared error of the sum at a row, per unit of the values' variance.
    pub(crate) fn error(&self, row: [f64; N]) -> f64 {
        let of = |n: usize| (0..N).map(|m| self.inverse[n][m] * row[m]).sum::<f64>();
        (0..N).map(|n| row[n] * of(n)).sum()
    }
}

/// Fits `rows`, each of which has columns and a value. Tries every subset of the few columns. Does not use columns that are linear
/// combinations of others, or whose coefficient would be negative. Returns `None` if no column explains anything.
pub(crate) fn fit<const N: usize>(rows: &[([f64; N], f64)]) -> Option<Fit<N>> {
    let mut products = [[0.0; N]; N];
    let mut with_value = [0.0; N];
    for (row, value) in rows {
        for n in 0..N {
            with_value[n] += row[n] * value;
            for m in 0..N {
                products[n][m] += row[n] * row[m];
            }
        }
    }
    // The best fit so far, and how much of the sum of squares of the values it explains.
    let mut best: Option<(f64, Fit<N>)> = None;
    for choice in 1..1_u32 << N {
        let Some(inverse) = inverse(&products, |n| choice & (1 << n) != 0) else {
            continue;
        };
        let coefficients: [f64; N] =
            std::array::from_fn(|n| (0..N).map(|m| inverse[n][m] * with_value[m]).sum());
        let explained: f64 = (0..N).map(|n| coefficients[n] * with_value[n]).sum();
        let is_better = best.as_ref().is_none_or(|(most, _)| explained > *most);
        if is_better && coefficients.iter().all(|&coefficient| coefficient >= 0.0) {
            let used = choice.count_ones() as usize;
            let found = Fit {
                coefficients,
                inverse,
                used,
            };
            best = Some((explained, found));
        }
    }
    best.map(|(_, fit)| fit)
}

/// Returns the inverse of the chosen part of a symmetric matrix (Gauss and Jordan), 0 elsewhere; `None` if a column is a sum of others.
fn inverse<const N: usize>(
    matrix: &[[f64; N]; N],
    is_chosen: impl Fn(usize) -> bool,
) -> Option<[[f64; N]; N]> {
    /// A column is a sum of others if they explain its squares except for at most this share.
    const SINGULAR: f64 = 1e-9;
    let mut left = *matrix;
    let mut right = [[0.0; N]; N];
    let chosen = || (0..N).filter(|&n| is_chosen(n));
    chosen().for_each(|n| right[n][n] = 1.0);
    for pivot in chosen() {
        let by = left[pivot][pivot];
        if by <= SINGULAR * matrix[pivot][pivot] || by <= 0.0 {
            return None;
        }
        for column in chosen() {
            left[pivot][column] /= by;
            right[pivot][column] /= by;
        }
        for row in chosen().filter(|&row| row != pivot) {
            let by = left[row][pivot];
            for column in chosen() {
                left[row][column] -= by * left[pivot][column];
                right[row][column] -= by * right[pivot][column];
            }
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sum_of_columns_is_found() {
        let rows: Vec<([f64; 3], f64)> = (1..20)
            .map(|n| {
                let row = [10.0, f64::from(n * 7 % 11), f64::from(n * n % 5)];
                (row, 3.0 * row[0] + 0.5 * row[1] + 2.0 * row[2])
            })
            .collect();
        let found = fit(&rows).unwrap();
        for (coefficient, expected) in found.coefficients.iter().zip([3.0, 0.5, 2.0]) {
            assert!((coefficient - expected).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(found.used, 3);
    }

    #[test]
    fn a_dependent_column_is_not_used() {
        let rows: Vec<([f64; 2], f64)> = (1..9)
            .map(|n| ([f64::from(n), 2.0 * f64::from(n)], f64::from(n)))
            .collect();
        let found = fit(&rows).unwrap();
        assert_eq!((found.coefficients, found.used), ([1.0, 0.0], 1));
        assert_eq!(fit(&[([0.0, 0.0], 1.0)]), None);
    }

    proptest! {
        #[test]
        fn no_other_coefficients_have_a_smaller_error(
            rows in prop::collection::vec((prop::array::uniform3(0.1_f64..10.0), -5.0_f64..20.0), 4..30),
            other in prop::array::uniform3(0.0_f64..4.0),
        ) {
            let squares = |coefficients: [f64; 3]| -> f64 {
                let rest = |(row, value): &([f64; 3], f64)| {
                    value - (0..3).map(|n| coefficients[n] * row[n]).sum::<f64>()
                };
                rows.iter().map(|row| rest(row).powi(2)).sum()
            };
            if let Some(found) = fit(&rows) {
                prop_assert!(found.coefficients.iter().all(|&coefficient| coefficient >= 0.0));
                prop_assert!(squares(found.coefficients) <= squares(other) + 1e-6);
            }
        }
    }
}

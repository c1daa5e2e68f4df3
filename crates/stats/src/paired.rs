//! Tests whether paired measurements differ, for many metrics at once.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the probability that pairs differ by at least this much by chance alone: the p-value of Student's two-sided paired test. It is 1
/// if all pairs are equal and 0 if all differ by the same amount. Returns `None` for fewer than two pairs.
pub fn paired_p_value(these: &[f64], others: &[f64]) -> Option<f64> {
    let differences = these.iter().zip(others).map(|(this, other)| other - this);
    let differences: Vec<f64> = differences.collect();
    let count = differences.len() as f64;
    if count < 2.0 {
        return None;
    }
    let mean = differences.iter().sum::<f64>() / count;
    let squares = differences
        .iter()
        .map(|difference| (difference - mean).powi(2));
    let variance = squares.sum::<f64>() / (count - 1.0);
    if variance == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let t = mean / (variance / count).sqrt();
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    Some(2.0 * student.sf(t.abs()))
}

/// Adjusts the p-values of many simultaneous tests by Holm's method (1979): the chance that any adjusted p-value is below a level by chance
/// alone is at most that level, no matter how the tests depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least = 0.0f64;
    for (place, &index) in order.iter().enumerate() {
        let left = (p_values.len() - place) as f64;
        least = least.max((left * p_values[index]).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_agree_with_tables() {
        // Student's own example of 1908: additional hours of sleep of ten patients with two drugs; t = 4.06, p = 0.0028.
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let other = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let p = paired_p_value(&one, &other).expect("ten pairs");
        assert!((p - 0.002_833).abs() < 1e-6, "{p}");
        assert_eq!(paired_p_value(&other, &one), Some(p));
    }

    #[test]
    fn constant_differences_are_certain() {
        assert_eq!(paired_p_value(&[1.0, 2.0], &[1.0, 2.0]), Some(1.0));
        assert_eq!(paired_p_value(&[1.0, 2.0], &[2.0, 3.0]), Some(0.0));
        assert_eq!(paired_p_value(&[1.0], &[2.0]), None);
    }

    #[test]
    fn many_tests_require_smaller_p_values() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }
}

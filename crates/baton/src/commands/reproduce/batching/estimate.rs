//! What several runs with different seeds say together.

/// A mean, and how far off it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    /// The mean over the seeds.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; 0 of a single run.
    pub half_width: f64,
}

/// Student's t for 95 %, both sides, by degrees of freedom from 1 on; what follows is near enough the normal distribution's.
const T_95: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131,
];
const NORMAL_95: f64 = 1.960;

impl Estimate {
    /// Of these values, at least one.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count();
        let mean = values.clone().sum::<f64>() / count.max(1) as f64;
        if count < 2 {
            return Self {
                mean,
                half_width: 0.0,
            };
        }
        let freedom = count - 1;
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / freedom as f64;
        let t = T_95.get(freedom - 1).copied().unwrap_or(NORMAL_95);
        Self {
            mean,
            half_width: t * (variance / count as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_student_s() {
        let estimate = Estimate::of([9.0, 10.0, 11.0].into_iter());
        assert_eq!(estimate.mean, 10.0);
        assert!((estimate.half_width - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
        let single = Estimate::of(std::iter::once(7.0));
        assert_eq!((single.mean, single.half_width), (7.0, 0.0));
    }
}

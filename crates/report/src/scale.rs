//! Formats the difference between a published value and a simulated one.

/// How the difference between two values is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In per cent of the published value, for rates.
    Relative,
    /// In percentage points, for values that are percentages.
    Points,
}

impl Scale {
    /// Formats the difference, or returns `-` if it is not defined.
    pub fn error(self, published: f64, simulated: f64) -> String {
        match self {
            _ if !simulated.is_finite() => "-".to_owned(),
            Self::Points => format!("{:+.1} points", simulated - published),
            Self::Relative if published != 0.0 => {
                format!("{:+.1} %", 100.0 * (simulated / published - 1.0))
            }
            Self::Relative => "-".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_in_the_scale_of_the_metric() {
        assert_eq!(Scale::Relative.error(200.0, 210.0), "+5.0 %");
        assert_eq!(Scale::Points.error(62.0, 58.0), "-4.0 points");
        assert_eq!(Scale::Relative.error(0.0, 3.0), "-");
    }
}

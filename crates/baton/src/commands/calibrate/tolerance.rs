//! How near a simulated number is to be to the published one.

use crate::commands::reproduce::Row;
use baton_report::Scale;

/// Rates and times, per cent of the published value.
pub const RELATIVE_PERCENT: f64 = 10.0;
/// Shares, points.
pub const POINTS: f64 = 8.0;
/// Delays, as a factor to either side.
pub const FACTOR: f64 = 2.0;

/// The tolerances in words.
pub fn in_words() -> String {
    format!(
        "{RELATIVE_PERCENT} % for rates and times, {POINTS} points for shares, a factor of {FACTOR} for delays"
    )
}

/// How far two values of one number are from each other, in tolerances; not a number or infinite if that cannot be told.
pub fn apart(scale: Scale, published: f64, one: f64, other: f64) -> f64 {
    match scale {
        Scale::Relative => ((one - other) / published).abs() / (RELATIVE_PERCENT / 100.0),
        Scale::Points => (one - other).abs() / POINTS,
        Scale::Factor => (one / other).ln().abs() / FACTOR.ln(),
    }
}

/// Whether a number is within its tolerance, bounds included; one that was not published always is.
pub fn met(row: &Row) -> bool {
    row.published
        .is_none_or(|published| apart(row.shown.scale, published, row.simulated, published) <= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::reproduce::Shown;

    #[test]
    fn bounds_are_within_and_what_lies_beyond_is_not() {
        let met = |scale, published, simulated| {
            let name = "a number";
            met(&Row {
                config: String::new(),
                metric: name,
                published,
                simulated,
                shown: Shown { name, scale },
            })
        };
        for (scale, least, most) in [
            (Scale::Relative, 45.0, 55.0),
            (Scale::Points, 42.0, 58.0),
            (Scale::Factor, 25.0, 100.0),
        ] {
            let of_50 = |simulated| met(scale, Some(50.0), simulated);
            assert!(of_50(least) && of_50(50.0) && of_50(most), "{scale:?}");
            assert!(!of_50(least - 0.1) && !of_50(most + 0.1), "{scale:?}");
            assert!(met(scale, None, 1e9), "{scale:?}");
        }
    }
}

//! Loads to run at.

use crate::cli::LoadArgs;
use crate::failure::Failure;
use baton_workload::load::Rate;
use std::fmt;
use std::str::FromStr;

/// A load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Point {
    /// A share of the capacity, per cent.
    Share(f64),
    /// Requests a second.
    Rate(f64),
}

/// Default loads, per cent of the capacity.
const USUAL: [f64; 7] = [10.0, 20.0, 50.0, 70.0, 80.0, 90.0, 95.0];
/// Maximum load, per cent of the capacity.
const MOST_PERCENT: f64 = 1e4;
/// Maximum load that needs no `%`: larger numbers are probably rates without `/s`, per cent of the capacity.
const MOST_BARE_PERCENT: f64 = 400.0;
/// Number of loads from `--from` to `--to`.
const EVENLY: u32 = 8;

impl Point {
    /// Returns the load in requests a second, for a given capacity.
    pub fn rate(self, capacity: f64) -> f64 {
        match self {
            Self::Share(percent) => capacity * percent / 100.0,
            Self::Rate(rate) => rate,
        }
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, most: f64| {
            let text = text.trim();
            let count = || baton_config::count(text).map(|count| count as f64);
            let number = text.parse::<f64>().ok().or_else(count);
            number.filter(|number| *number > 0.0 && *number <= most)
        };
        let point = match (text.strip_suffix("/s"), text.strip_suffix('%')) {
            (Some(rate), _) => number(rate, Rate::MOST_PER_SECOND).map(Self::Rate),
            (None, Some(share)) => number(share, MOST_PERCENT).map(Self::Share),
            (None, None) => number(text, MOST_BARE_PERCENT).map(Self::Share),
        };
        point.ok_or_else(|| {
            format!(
                "expected a share of the capacity, as in 80 or 80% (at most {MOST_PERCENT}%, and {MOST_BARE_PERCENT} without the sign), or a \
                 rate, as in 5000/s (at most {}/s)",
                Rate::MOST_PER_SECOND
            )
        })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(percent) => write!(f, "{percent}%"),
            Self::Rate(rate) => write!(f, "{rate}/s"),
        }
    }
}

/// Returns the requested loads.
///
/// # Errors
/// Fails if they are not valid.
pub fn chosen(arguments: &LoadArgs) -> Result<Vec<Point>, Failure> {
    let refuse = |flag: &str, point: Point, expected: &str| {
        Err(Failure::BadInput(format!(
            "{flag} {point}: expected {expected}"
        )))
    };
    if let Some(capacity @ Point::Share(_)) = arguments.capacity {
        return refuse("--capacity", capacity, "a rate, as in 20000/s");
    }
    match (arguments.from, arguments.to) {
        (Some(Point::Share(from)), Some(Point::Share(to))) if from < to => {
            let step = (to - from) / f64::from(EVENLY - 1);
            Ok((0..EVENLY)
                .map(|n| Point::Share(from + step * f64::from(n)))
                .collect())
        }
        (Some(from), Some(_)) => refuse(
            "--from",
            from,
            "a share of the capacity that is smaller than --to",
        ),
        _ if arguments.points.is_empty() => Ok(USUAL.map(Point::Share).to_vec()),
        _ => Ok(arguments.points.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_rates_are_distinguished() {
        assert_eq!("80".parse(), Ok(Point::Share(80.0)));
        assert_eq!("5000%".parse(), Ok(Point::Share(5000.0)));
        assert_eq!("12.5%".parse(), Ok(Point::Share(12.5)));
        assert_eq!("5000/s".parse(), Ok(Point::Rate(5000.0)));
        assert_eq!("10k/s".parse(), Ok(Point::Rate(10_000.0)));
        assert_eq!(Point::Share(80.0).rate(500.0), 400.0);
        for text in [
            "", "0", "-5", "x", "5000/m", "inf", "nan%", "1e9/s", "20000%", "5000",
        ] {
            assert!(text.parse::<Point>().is_err(), "{text}");
        }
    }
}

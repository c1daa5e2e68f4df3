//! Axes, and the round values at which they have ticks.

use crate::{bytes, grouped};

/// Kind of an axis's values, which decides which values are round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// Numbers: 1, 2, 5, 10 and so on.
    Numbers,
    /// Sizes in bytes: powers of two.
    Bytes,
}

/// A linear axis, or one with logarithms to base 10. The position of a value on the axis is called its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Axis {
    log: bool,
    of: Of,
    /// Whether all values are powers of two.
    binary: bool,
    pub from: f64,
    pub to: f64,
}

impl Axis {
    /// Creates an axis that shows all `values`; a linear axis may begin at 0.
    pub fn new(log: bool, of: Of, values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let shown: Vec<f64> = values
            .filter(|value| value.is_finite() && (!log || *value > 0.0))
            .collect();
        let binary = of == Of::Bytes
            || !shown.is_empty() && shown.iter().all(|value| value.log2().fract() == 0.0);
        let places = shown
            .iter()
            .map(|value| if log { value.log10() } else { *value });
        let (least, most) = places.fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(least, most), place| (least.min(place), most.max(place)),
        );
        let (least, most) = if least <= most {
            (least, most)
        } else {
            (0.0, 1.0)
        };
        let is_from_zero = from_zero && !log;
        let least = if is_from_zero { least.min(0.0) } else { least };
        let margin = if most > least {
            0.04 * (most - least)
        } else {
            0.5
        };
        let has_margin = !is_from_zero || least < 0.0;
        Self {
            log,
            of,
            binary,
            from: if has_margin { least - margin } else { least },
            to: most + margin,
        }
    }

    /// Creates a linear axis from 0 to `most`, the largest value, which may be 0.
    pub const fn up_to(most: f64) -> Self {
        Self {
            log: false,
            of: Of::Numbers,
            binary: false,
            from: 0.0,
            to: most,
        }
    }

    /// Returns the place of a value, or `None` if the value cannot be shown.
    pub fn place(self, value: f64) -> Option<f64> {
        let shown = value.is_finite() && (!self.log || value > 0.0);
        shown.then(|| if self.log { value.log10() } else { value })
    }

    /// Returns the places of at most about `most` round values.
    pub fn ticks(self, most: usize) -> Vec<f64> {
        let most = most.max(2);
        if !self.log {
            return self.evenly(self.from, self.to, most);
        }
        let within = |values: Vec<f64>| -> Vec<f64> {
            let places = values.into_iter().map(f64::log10);
            places
                .filter(|place| (self.from..=self.to).contains(place))
                .collect()
        };
        if self.binary {
            let powers = within((-64..=63).map(|power| 2_f64.powi(power)).collect());
            return thinned(&powers, most);
        }
        let of_decades = |parts: &[f64]| {
            let decades = -30..=30;
            let values =
                decades.flat_map(|power| parts.iter().map(move |part| part * 10_f64.powi(power)));
            within(values.collect())
        };
        let (fine, decades) = (of_decades(&[1.0, 2.0, 5.0]), of_decades(&[1.0]));
        match (fine.len(), decades.len()) {
            // About a decade or less: as on a linear axis.
            (0..=2, _) => within(self.evenly(10_f64.powf(self.from), 10_f64.powf(self.to), most)),
            (fine_count, _) if fine_count <= most => fine,
            _ => thinned(&decades, most),
        }
    }

    /// Returns round values at equal distances.
    fn evenly(self, from: f64, to: f64, most: usize) -> Vec<f64> {
        let least_step = (to - from) / most as f64;
        let step = match self.of {
            Of::Bytes => least_step.log2().ceil().exp2(),
            Of::Numbers => {
                let decade = 10_f64.powf(least_step.log10().floor());
                let round = [1.0, 2.0, 5.0, 10.0].map(|part| part * decade);
                round
                    .into_iter()
                    .find(|step| *step >= least_step)
                    .unwrap_or(10.0 * decade)
            }
        };
        let numbers = (from / step).ceil() as i64..=(to / step).floor() as i64;
        numbers.map(|number| number as f64 * step).collect()
    }

    /// Returns the value at a place as text.
    pub fn label(self, place: f64) -> String {
        let value = if self.log { 10_f64.powf(place) } else { place };
        match self.of {
            Of::Bytes => bytes(value.round().max(0.0) as u64).replace(".0", ""),
            Of::Numbers => round(value),
        }
    }
}

/// Returns every n-th place, so that at most `most` remain.
fn thinned(places: &[f64], most: usize) -> Vec<f64> {
    let step = places.len().div_ceil(most).max(1);
    places.iter().copied().step_by(step).collect()
}

/// Formats a round number without floating-point noise; large numbers get the suffix M or G.
fn round(value: f64) -> String {
    let magnitude = value.abs();
    let (scale, unit) = match magnitude {
        1e9.. => (1e9, " G"),
        1e6.. => (1e6, " M"),
        _ => (1.0, ""),
    };
    let scaled = magnitude / scale;
    // Round values have few digits.
    let digits = format!("{scaled:.9e}").parse().unwrap_or(scaled);
    let sign = if value < 0.0 && digits != 0.0 {
        "-"
    } else {
        ""
    };
    match digits >= 1000.0 && digits.fract() == 0.0 {
        true => format!("{sign}{}{unit}", grouped(digits as u64)),
        false => format!("{sign}{digits}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(log: bool, of: Of, values: &[f64], most: usize) -> Vec<String> {
        let axis = Axis::new(log, of, values.iter().copied(), false);
        axis.ticks(most)
            .into_iter()
            .map(|place| axis.label(place))
            .collect()
    }

    #[test]
    fn ticks_are_round() {
        let numbers = |log, values: &[f64], most| labels(log, Of::Numbers, values, most);
        assert_eq!(
            numbers(false, &[0.0, 0.97], 6),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(
            numbers(false, &[100.0, 1000.0], 5),
            ["200", "400", "600", "800", "1,000"]
        );
        assert_eq!(numbers(false, &[-3.0, 3.0], 4), ["-2", "0", "2"]);
        assert_eq!(numbers(true, &[1.0, 30.0], 6), ["1", "2", "5", "10", "20"]);
        assert_eq!(
            numbers(true, &[0.3, 300_000.0], 7),
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
        assert_eq!(numbers(true, &[2.1, 2.9], 5), ["2.2", "2.4", "2.6", "2.8"]);
        assert_eq!(
            numbers(false, &[0.0, 4e9], 5),
            ["0", "1 G", "2 G", "3 G", "4 G"]
        );
    }

    #[test]
    fn a_doubling_axis_has_ticks_at_powers_of_two() {
        let connections = [16.0, 64.0, 256.0, 1024.0];
        assert_eq!(
            labels(true, Of::Numbers, &connections, 8),
            ["16", "32", "64", "128", "256", "512", "1,024"]
        );
        let sizes = [65_536.0, 1_048_576.0];
        assert_eq!(
            labels(true, Of::Bytes, &sizes, 8),
            ["64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB"]
        );
        assert_eq!(
            labels(true, Of::Bytes, &sizes, 3),
            ["64 KiB", "256 KiB", "1 MiB"]
        );
        assert_eq!(
            labels(false, Of::Bytes, &[0.0, 3e6], 4),
            ["0 B", "1 MiB", "2 MiB"]
        );
    }

    #[test]
    fn an_axis_contains_all_values_and_works_without_any() {
        let axis = Axis::new(false, Of::Numbers, [3.0, 7.0].into_iter(), true);
        assert!(axis.from == 0.0 && axis.to > 7.0);
        let below = Axis::new(false, Of::Numbers, [-3.0, 7.0].into_iter(), true);
        assert!(below.from < -3.0);
        let log = Axis::new(true, Of::Numbers, [0.0, 10.0].into_iter(), true);
        assert_eq!((log.place(0.0), log.place(10.0)), (None, Some(1.0)));
        assert!(
            !Axis::new(false, Of::Numbers, [].into_iter(), true)
                .ticks(5)
                .is_empty()
        );
        assert!(
            !Axis::new(true, Of::Numbers, [5.0].into_iter(), true)
                .ticks(5)
                .is_empty()
        );
    }
}

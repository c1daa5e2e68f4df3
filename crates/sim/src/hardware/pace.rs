//! Converts cycles, instructions and bits to time, without drift.

use baton_wire::Span;

/// Picoseconds in a microsecond. A rate of one million per second is one unit in this number of picoseconds.
const PS_PER_US: u64 = 1_000_000;

/// A rate of `millions_per_second` units. The remaining fraction of a picosecond is carried over to the next result, so that the sum of any
/// number of spans is the span of the sum, rounded down once.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    millions_per_second: u64,
    /// Picoseconds per unit, if that is a whole number.
    whole_ps: Option<u64>,
    /// Remainder of the last result, in picoseconds divided by `millions_per_second`.
    carry: u64,
}

impl Pace {
    /// `millions_per_second` is MHz, MIPS or Mb/s; not 0.
    pub(super) fn new(millions_per_second: u64) -> Self {
        assert!(millions_per_second > 0, "the rate is above 0");
        let whole_ps = PS_PER_US
            .is_multiple_of(millions_per_second)
            .then_some(PS_PER_US / millions_per_second);
        Self {
            millions_per_second,
            whole_ps,
            carry: 0,
        }
    }

    /// Returns the time that `units` take.
    pub(super) fn span(&mut self, units: u64) -> Span {
        debug_assert!(
            units < u64::MAX / PS_PER_US / 2,
            "a piece of work is far below the largest time"
        );
        if let Some(whole_ps) = self.whole_ps {
            return Span::from_ps(units * whole_ps);
        }
        let scaled = units * PS_PER_US + self.carry;
        self.carry = scaled % self.millions_per_second;
        Span::from_ps(scaled / self.millions_per_second)
    }

    /// Returns how many whole units fit into the `ps` picoseconds since the start of a run.
    pub(super) fn units_in(&self, ps: u64) -> u64 {
        if let Some(whole_ps) = self.whole_ps {
            return ps / whole_ps;
        }
        let units = u128::from(ps) * u128::from(self.millions_per_second) / u128::from(PS_PER_US);
        u64::try_from(units).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_periods_are_exact() {
        assert_eq!(Pace::new(2_000).span(3), Span::from_ps(1_500));
        assert_eq!(Pace::new(400).span(1), Span::from_ps(2_500));
        assert_eq!(Pace::new(10_000).span(8 * 1_538), Span::from_ps(1_230_400));
    }

    #[test]
    fn fractions_do_not_drift() {
        for rate in [3, 7, 300, 600, 1_900, 2_400, 2_667, 3_333] {
            let mut pace = Pace::new(rate);
            let mut total = 0;
            for piece in 0..10_000 {
                total += pace.span(piece % 17).as_ps();
            }
            let units: u64 = (0..10_000).map(|piece| piece % 17).sum();
            assert_eq!(
                total,
                units * PS_PER_US / rate,
                "at {rate} million a second"
            );
        }
    }

    #[test]
    fn units_in_is_the_inverse() {
        for rate in [400, 600, 2_000, 2_667] {
            let mut pace = Pace::new(rate);
            let span = pace.span(1_000_003);
            // The span was rounded down, so the last unit may end just after it.
            assert_eq!(
                pace.units_in(span.as_ps() + 1),
                1_000_003,
                "at {rate} million a second"
            );
        }
    }
}

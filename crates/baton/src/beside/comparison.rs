//! Compares published numbers with simulated ones.

use super::Outcome;
use crate::config::{Form, Number, Tolerance};
use baton_report::significant;
use baton_stats::Estimate;

/// A number of a point, with the published number if there is one.
pub struct Comparison<'a> {
    /// The point.
    pub point: usize,
    /// The point that the number is relative to.
    pub against: Option<usize>,
    /// The name of the metric.
    pub metric: &'static str,
    /// Meaning of the number for the metric.
    pub form: Form,
    /// The published number.
    pub number: Option<&'a Number>,
    /// The simulated number.
    pub simulated: Option<Estimate>,
}

/// What a row shows of a point: the metric, the point that it is relative to, and the form.
type Row = (&'static str, Option<usize>, Form);

baton_named::named! {
    /// Result of comparing a simulated number with the published one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict {
        /// The difference is within the tolerance.
        Within => "within",
        /// The difference is larger than the tolerance.
        Outside => "outside",
        /// One number is an increase, the other a decrease.
        WrongSign => "wrong sign",
        /// There is no tolerance.
        Untold => "no tolerance",
    }
}

impl Verdict {
    /// Returns the mark that tables append to a number with this result.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Within => "",
            Self::Outside => " *",
            Self::WrongSign => " !",
            Self::Untold => " ?",
        }
    }
}

impl<'a> Comparison<'a> {
    /// Returns all numbers of a study, point by point: the metrics of its table in order, then published numbers of other metrics.
    pub fn all(outcome: &'a Outcome<'a>) -> Vec<Self> {
        let points = 0..outcome.plan.points.len();
        points
            .flat_map(|point| Self::of_point(outcome, point))
            .collect()
    }

    /// Returns the numbers with a published counterpart.
    pub fn published(outcome: &'a Outcome<'a>) -> Vec<Self> {
        let mut all = Self::all(outcome);
        all.retain(|comparison| comparison.number.is_some());
        all
    }

    fn of_point(outcome: &'a Outcome<'a>, point: usize) -> impl Iterator<Item = Self> {
        let numbers = outcome.plan.numbers.iter();
        let here: Vec<&Number> = numbers.filter(|number| number.point == point).collect();
        let of_table = outcome.plan.table.iter().flat_map(|table| {
            let against = table.against.get(point).copied().flatten();
            table.metrics.iter().flat_map(move |metric| {
                let beside = against.filter(|_| table.is_compared(metric));
                let beside = beside.map(|other| (metric.name, Some(other), table.form));
                std::iter::once((metric.name, None, Form::Absolute)).chain(beside)
            })
        });
        let of_numbers = here
            .iter()
            .map(|number| (number.metric.name, number.against, number.form));
        let mut rows: Vec<Row> = Vec::new();
        for row in of_table.chain(of_numbers) {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows.into_iter().flat_map(move |row| {
            let (metric, against, form) = row;
            let of_row =
                |number: &&Number| (number.metric.name, number.against, number.form) == row;
            let numbers: Vec<&Number> = here
                .iter()
                .copied()
                .filter(|number| of_row(number))
                .collect();
            let bare = numbers.is_empty().then_some(None);
            let simulated = match against {
                None => outcome.estimate(point, metric),
                Some(other) => outcome.beside(point, other, metric, form),
            };
            numbers
                .into_iter()
                .map(Some)
                .chain(bare)
                .map(move |number| Self {
                    point,
                    against,
                    metric,
                    form,
                    number,
                    simulated,
                })
        })
    }

    /// Returns the result of the comparison, or `None` if one of the numbers is missing.
    pub fn verdict(&self) -> Option<Verdict> {
        let number = self.number?;
        let (published, simulated) = (number.value, self.simulated?.mean);
        let neutral = if self.form == Form::Ratio { 1.0 } else { 0.0 };
        if self.form != Form::Absolute && (published - neutral) * (simulated - neutral) < 0.0 {
            return Some(Verdict::WrongSign);
        }
        Some(match self.distance() {
            None => Verdict::Untold,
            // The last digit of a decimal fraction may be wrong in binary.
            Some(distance) if distance.abs() <= 1.0 + 1e-9 => Verdict::Within,
            Some(_) => Verdict::Outside,
        })
    }

    /// Returns the distance of the simulated number above or, if negative, below the published one, in tolerances; infinite if it cannot be
    /// determined. `None` if a number or the tolerance is missing.
    pub fn distance(&self) -> Option<f64> {
        let number = self.number?;
        let (published, simulated) = (number.value, self.simulated?.mean);
        let apart = simulated - published;
        let distance = match number.tolerance? {
            _ if apart == 0.0 => 0.0,
            Tolerance::Percent(percent) => apart / (published.abs() * percent / 100.0),
            Tolerance::Points(points) => apart / points,
            Tolerance::Factor(most) => (simulated / published).ln() / most.ln(),
        };
        Some(if distance.is_nan() {
            f64::INFINITY
        } else {
            distance
        })
    }

    /// Returns the difference between the simulated number and the published one, in words.
    pub fn error(&self) -> String {
        let (Some(number), Some(simulated)) = (self.number, self.simulated) else {
            return String::new();
        };
        let (published, simulated) = (number.value, simulated.mean);
        let is_share = self.metric.ends_with("_percent") || self.form == Form::Percent;
        match number.tolerance {
            _ if is_share => format!("{:+.1} points", simulated - published),
            Some(Tolerance::Factor(_)) if published != 0.0 => {
                format!("x {:.2}", simulated / published)
            }
            _ if self.form == Form::Ratio => format!("x {:.2}", simulated / published),
            _ if published != 0.0 => format!("{:+.1} %", 100.0 * (simulated / published - 1.0)),
            _ => format!("{:+.1}", simulated - published),
        }
    }

    /// Formats a number in the form of this one.
    pub fn shown(&self, value: f64) -> String {
        match self.form {
            Form::Absolute => significant(value),
            Form::Percent => format!("{value:+.1} %"),
            Form::Ratio => format!("x {}", significant(value)),
            Form::Difference => format!(
                "{}{}",
                if value < 0.0 { "" } else { "+" },
                significant(value)
            ),
        }
    }
}

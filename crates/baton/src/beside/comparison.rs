//! A published number beside the simulated one.

use super::Outcome;
use crate::config::{Form, Number, Tolerance};
use baton_report::significant;
use baton_stats::Estimate;

/// A number of a point, and what is published of it, if anything is.
pub struct Comparison<'a> {
    /// The point.
    pub point: usize,
    /// What it is compared with.
    pub against: Option<usize>,
    /// The name of the metric.
    pub metric: &'static str,
    /// What the number says of it.
    pub form: Form,
    /// What is published.
    pub number: Option<&'a Number>,
    /// What came out.
    pub simulated: Option<Estimate>,
}

/// What a row of a point is of: a metric, what it is compared with, and how.
type Row = (&'static str, Option<usize>, Form);

/// How a simulated number compares with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As near as asked for.
    Within,
    /// Not as near.
    Outside,
    /// One says more, the other less.
    WrongSign,
    /// Nobody said how near it has to be.
    Untold,
}

impl Verdict {
    /// How machines are told.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Outside => "outside",
            Self::WrongSign => "wrong sign",
            Self::Untold => "no tolerance",
        }
    }

    /// How tables show it.
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
    /// All of a study, point by point: the metrics of its table in their order, then what is published of others.
    pub fn all(outcome: &'a Outcome<'a>) -> Vec<Self> {
        let points = 0..outcome.plan.points.len();
        points
            .flat_map(|point| Self::of_point(outcome, point))
            .collect()
    }

    /// Those with something published.
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

    /// How it compares; none where nothing is published or came out.
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

    /// How far the simulated number is above or, less than 0, below the published one, in tolerances; infinite where that cannot be told. None
    /// where nothing is published or came out, or there is no tolerance.
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

    /// How far the simulated number is from the published one, in words.
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

    /// A number in the form of this one.
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

//! Published values, and the tolerances of simulated values, as study files have them.

use super::super::source::{Diagnostic, Sources};
use super::super::tree::{Node, Value};

baton_named::named! {
    /// Meaning of a number for a metric.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Form {
        /// The metric's value.
        Absolute => "absolute",
        /// Difference from the value at another point, per cent of the latter.
        Percent => "percent",
        /// Ratio to the value at another point.
        Ratio => "ratio",
        /// Difference from the value at another point, in the metric's unit.
        Difference => "difference",
    }
}

/// Accepted distance of a simulated number from the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Share of the published number, per cent.
    Percent(f64),
    /// Factor by which the number may be larger or smaller.
    Factor(f64),
    /// Difference in the unit of the number.
    Points(f64),
}

const VALUE: &str = "expected a number or, with `against`, the difference from that point: \"+12 %\", \"x 2.2\" or \"+5\"";
const TOLERANCE: &str =
    "expected a share of the number, as \"7 %\", a factor, as \"x 2\", or a number in its unit";

/// Reads a published value. `is_relative` says whether the value is relative to another point.
///
/// # Errors
/// Fails if there is no number, or if it is absolute instead of relative or vice versa.
pub fn value(sources: &Sources, node: &Node, is_relative: bool) -> Result<(Form, f64), Diagnostic> {
    let found = match &node.value {
        Value::String(text) => relative(text),
        other => other.number().map(|number| (Form::Absolute, number)),
    };
    match found {
        Some(found) if (found.0 == Form::Absolute) != is_relative => Ok(found),
        Some((Form::Absolute, _)) => {
            let message = "is an absolute value; expected the difference from the point of `against`: \"+12 %\", \"x 2.2\" or \"+5\"";
            Err(sources.diagnose(&node.origin, message))
        }
        Some(_) => {
            let message = "is a difference; expected `against`, which says from what, as in against = { name = \"none\" }";
            Err(sources.diagnose(&node.origin, message))
        }
        None => Err(sources.diagnose(&node.origin, VALUE)),
    }
}

/// Parses `+12 %`, `x 2.2`, `-5`.
fn relative(text: &str) -> Option<(Form, f64)> {
    if let Some(times) = text.strip_prefix('x') {
        return Some((Form::Ratio, finite(times)?));
    }
    if !text.starts_with(['+', '-']) {
        return None;
    }
    match text.strip_suffix('%') {
        Some(percent) => Some((Form::Percent, finite(percent)?)),
        None => Some((Form::Difference, finite(text)?)),
    }
}

/// Reads a tolerance.
///
/// # Errors
/// Fails if the node is not a tolerance.
pub fn tolerance(sources: &Sources, node: &Node) -> Result<Tolerance, Diagnostic> {
    let found = match &node.value {
        Value::String(text) => match (text.strip_prefix('x'), text.strip_suffix('%')) {
            (Some(factor), _) => finite(factor)
                .filter(|factor| *factor > 1.0)
                .map(Tolerance::Factor),
            (None, Some(percent)) => finite(percent).map(Tolerance::Percent),
            (None, None) => None,
        },
        other => other.number().map(Tolerance::Points),
    };
    let is_size = |tolerance: &Tolerance| match *tolerance {
        Tolerance::Percent(size) | Tolerance::Factor(size) | Tolerance::Points(size) => size >= 0.0,
    };
    let found = found.filter(is_size);
    found.ok_or_else(|| sources.diagnose(&node.origin, format!("tolerance: {TOLERANCE}")))
}

fn finite(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

//! A published value and how near a simulated one is to be, as a study file has them.

use super::super::source::{Diagnostic, Sources};
use super::super::tree::{Node, Value};

/// What a number says of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its value.
    Absolute,
    /// By how much it differs from its value at another point, per cent of that.
    Percent,
    /// How many times its value at another point it is.
    Ratio,
    /// By how much it differs from its value at another point, in the metric's unit.
    Difference,
}

/// How far a simulated number may be from the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Share of the published number, per cent.
    Percent(f64),
    /// So many times as much, or as little.
    Factor(f64),
    /// In the unit of the number.
    Points(f64),
}

const VALUE: &str = "expected a number or, with `against`, how it differs from there: \"+12 %\", \"x 2.2\" or \"+5\"";
const TOLERANCE: &str =
    "expected a share of the number, as \"7 %\", a factor, as \"x 2\", or a number in its unit";

/// Reads what is published of a metric; `is_relative` says whether that is beside another point.
///
/// # Errors
/// It is no number, or is one of the other kind.
pub fn value(sources: &Sources, node: &Node, is_relative: bool) -> Result<(Form, f64), Diagnostic> {
    let found = match &node.value {
        Value::String(text) => relative(text),
        other => other.number().map(|number| (Form::Absolute, number)),
    };
    match found {
        Some(found) if (found.0 == Form::Absolute) != is_relative => Ok(found),
        Some((Form::Absolute, _)) => {
            let message = "is a value of its own; expected how it differs from the point of `against`: \"+12 %\", \"x 2.2\" or \"+5\"";
            Err(sources.diagnose(&node.origin, message))
        }
        Some(_) => {
            let message = "differs from something; expected `against` to say from what, as in against = { name = \"none\" }";
            Err(sources.diagnose(&node.origin, message))
        }
        None => Err(sources.diagnose(&node.origin, VALUE)),
    }
}

/// `+12 %`, `x 2.2`, `-5`.
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
/// It is none.
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

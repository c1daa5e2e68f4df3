//! Values from one number to another: `{ from = 16, to = 4096, factor = 2 }`.

use super::super::source::{Diagnostic, Sources};
use super::super::tree::{Node, Value};

/// Accepted content of a range.
const EXPECTED: &str = "expected a range: `from`, `to` and one of `count`, `step` or `factor`, as in { from = 100, to = 800, step = 100 }; \
                        `count` with scale = \"log\" where each value is the one before times the same";

const KEYS: [&str; 6] = ["from", "to", "count", "step", "factor", "scale"];

/// Maximum number of values in a range.
const MOST: f64 = 100_000.0;

/// Spacing of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spacing {
    /// Number of evenly spaced values.
    Count(f64),
    /// Number of values with equal ratios.
    LogCount(f64),
    /// Difference of two values.
    Step(f64),
    /// Ratio of two values.
    Factor(f64),
}

/// Returns whether a table is meant as a range.
pub fn is_range(node: &Node) -> bool {
    ["from", "to"].iter().any(|key| node.get(key).is_some())
}

/// Returns the values of a range. If `whole`, the key takes whole numbers only: values are rounded, and duplicates removed.
///
/// # Errors
/// Fails if the node is not a range.
pub fn values(sources: &Sources, node: &Node, whole: bool) -> Result<Vec<Node>, Diagnostic> {
    let wrong = |message: String| sources.diagnose(&node.origin, message);
    let mut keys = node.table().into_iter().flatten().map(|(key, _)| key);
    if keys.any(|key| !KEYS.contains(&key.as_str())) {
        return Err(wrong(EXPECTED.to_owned()));
    }
    let number = |key: &str| {
        node.get(key)
            .map(|node| number(sources, key, node))
            .transpose()
    };
    let (Some(from), Some(to)) = (number("from")?, number("to")?) else {
        return Err(wrong(EXPECTED.to_owned()));
    };
    let is_log = match node.get("scale").map(|scale| (scale, scale.string())) {
        None | Some((_, Some("linear"))) => false,
        Some((_, Some("log"))) => true,
        Some((scale, _)) => {
            let message = "scale: expected \"linear\" or \"log\"";
            return Err(sources.diagnose(&scale.origin, message));
        }
    };
    let spacing = match (number("count")?, number("step")?, number("factor")?) {
        (Some(count), None, None) if is_log => Spacing::LogCount(count),
        (Some(count), None, None) => Spacing::Count(count),
        (None, Some(step), None) if !is_log => Spacing::Step(step),
        (None, None, Some(factor)) => Spacing::Factor(factor),
        _ => return Err(wrong(EXPECTED.to_owned())),
    };
    let values = spread(from, to, spacing).map_err(wrong)?;
    let mut nodes: Vec<Node> = Vec::with_capacity(values.len());
    for value in values {
        let value = match whole {
            true => Value::Integer(value.round() as i64),
            false => Value::Float(value),
        };
        if nodes.last().is_none_or(|last| last.value != value) {
            let origin = node.origin.clone();
            nodes.push(Node { origin, value });
        }
    }
    Ok(nodes)
}

fn number(sources: &Sources, key: &str, node: &Node) -> Result<f64, Diagnostic> {
    let wrong = || sources.diagnose(&node.origin, format!("{key}: expected a number"));
    node.number().ok_or_else(wrong)
}

fn spread(from: f64, to: f64, spacing: Spacing) -> Result<Vec<f64>, String> {
    let by_factors = matches!(spacing, Spacing::LogCount(_) | Spacing::Factor(_));
    if by_factors && !(from > 0.0 && to > 0.0) {
        return Err(format!(
            "from {from} to {to}: no factor leads from the first to the last value; expected two numbers above 0"
        ));
    }
    // The logarithms of values with equal ratios are evenly spaced.
    let (first, last) = match by_factors {
        true => (from.ln(), to.ln()),
        false => (from, to),
    };
    let steps = match spacing {
        Spacing::Count(count) | Spacing::LogCount(count) => {
            if count < 2.0 || count.fract() != 0.0 {
                return Err(format!(
                    "count: found {count}; expected a whole number of at least 2"
                ));
            }
            count - 1.0
        }
        Spacing::Step(step) => (last - first) / step,
        Spacing::Factor(factor) => (last - first) / factor.ln(),
    };
    if from == to || !(steps.is_finite() && steps > 0.0) {
        return Err(format!(
            "from {from} to {to}: this spacing does not lead from the first to the last value; expected one that does"
        ));
    }
    if steps >= MOST {
        return Err(format!("has {steps:.0} values; expected at most {MOST}"));
    }
    let step = match spacing {
        Spacing::Step(step) => step,
        Spacing::Factor(factor) => factor.ln(),
        Spacing::Count(_) | Spacing::LogCount(_) => (last - first) / steps,
    };
    // A value that misses the end by a rounding error counts as the end.
    let count = (steps + 1e-9).floor() as u32;
    let value = |number: u32| match by_factors {
        true => tidy((first + step * f64::from(number)).exp()),
        false => tidy(first + step * f64::from(number)),
    };
    Ok((0..=count).map(value).collect())
}

/// Removes rounding errors in the last digits: 0.3, not 0.30000000000000004.
fn tidy(number: f64) -> f64 {
    format!("{number:.12e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_reach_their_ends() {
        let spread = |from, to, spacing| spread(from, to, spacing).expect("a range");
        assert_eq!(spread(0.0, 0.3, Spacing::Step(0.1)), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(spread(0.0, 1.0, Spacing::Step(0.4)), [0.0, 0.4, 0.8]);
        assert_eq!(spread(1.0, 4.0, Spacing::Count(3.0)), [1.0, 2.5, 4.0]);
        assert_eq!(spread(4.0, 1.0, Spacing::Count(2.0)), [4.0, 1.0]);
        assert_eq!(
            spread(16.0, 128.0, Spacing::Factor(2.0)),
            [16.0, 32.0, 64.0, 128.0]
        );
        assert_eq!(spread(8.0, 1.0, Spacing::Factor(0.5)), [8.0, 4.0, 2.0, 1.0]);
        assert_eq!(
            spread(1.0, 1000.0, Spacing::LogCount(4.0)),
            [1.0, 10.0, 100.0, 1000.0]
        );
    }

    #[test]
    fn ranges_that_do_not_reach_their_end_are_refused() {
        for (from, to, spacing) in [
            (0.0, 10.0, Spacing::Factor(2.0)),
            (-1.0, 10.0, Spacing::LogCount(3.0)),
            (1.0, 10.0, Spacing::Factor(1.0)),
            (1.0, 10.0, Spacing::Factor(-2.0)),
            (1.0, 10.0, Spacing::Step(0.0)),
            (1.0, 10.0, Spacing::Step(-1.0)),
            (1.0, 1.0, Spacing::Count(3.0)),
            (1.0, 10.0, Spacing::Count(1.0)),
            (1.0, 10.0, Spacing::Count(2.5)),
            (0.0, 1e9, Spacing::Step(1.0)),
        ] {
            assert!(
                spread(from, to, spacing).is_err(),
                "{from} {to} {spacing:?}"
            );
        }
    }
}

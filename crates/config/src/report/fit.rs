//! `[fit]`: constants to fit to published numbers.

use super::Status;
use crate::keys::{self, Allowed};
use crate::source::{Diagnostic, Sources};
use crate::suggest;
use crate::sweep::{leaves, range};
use crate::tree::{Node, Value};

/// Instructions for fitting constants.
#[derive(Clone, Debug)]
pub struct FitPlan {
    /// Constants to change.
    pub constants: Vec<Constant>,
    /// Kinds of numbers to fit the constants to.
    pub targets: Vec<Status>,
    /// Maximum number of rounds.
    pub rounds: usize,
}

/// A key whose value is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The key.
    pub path: String,
    /// Minimum.
    pub from: f64,
    /// Maximum.
    pub to: f64,
    /// Initial value.
    pub start: f64,
    /// Change by which the fit explores the key's influence.
    pub step: f64,
    /// Whether only whole numbers are accepted.
    pub whole: bool,
    /// Number that values are multiples of, if the study says so. Such a constant is tried value by value, and not only searched.
    pub multiple_of: Option<f64>,
}

const KEYS: [&str; 5] = ["from", "to", "start", "step", "multiple_of"];
const EXPECTED: &str = "expected bounds and a start, as in { from = 10, to = 1000, start = 100 }; `step` is the change by which the fit \
                        explores the key's influence, by default a tenth of `start`; `multiple_of` allows only multiples";

/// Number of rounds if the file has none.
const ROUNDS: i64 = 6;

impl FitPlan {
    /// Reads `[fit]`.
    ///
    /// # Errors
    /// Fails if the table is not valid.
    pub(super) fn read(sources: &Sources, node: &Node) -> Result<Self, Diagnostic> {
        let mut node = node.clone();
        let rounds = node.take("rounds").map(|entry| entry.node);
        let rounds = match rounds.as_ref().map(|node| &node.value) {
            None => ROUNDS,
            Some(&Value::Integer(rounds @ 1..=1000)) => rounds,
            Some(_) => {
                let place = rounds.map_or(node.origin.clone(), |node| node.origin);
                let message = "fit.rounds: expected a whole number from 1 to 1000";
                return Err(sources.diagnose(&place, message));
            }
        };
        let targets = match node.take("targets").map(|entry| entry.node) {
            None => vec![Status::Given],
            Some(node) => targets(sources, &node)?,
        };
        let node = node.expand_dots();
        let leaves = leaves(sources, &node, &range::is_range)?;
        let constants = leaves
            .iter()
            .map(|leaf| Constant::read(sources, &leaf.path, &leaf.key, leaf.node));
        let constants: Vec<Constant> = constants.collect::<Result<_, _>>()?;
        match constants.is_empty() {
            true => Err(sources.diagnose(&node.origin, format!("fit: no key to fit; {EXPECTED}"))),
            false => Ok(Self {
                constants,
                targets,
                rounds: rounds as usize,
            }),
        }
    }
}

fn targets(sources: &Sources, node: &Node) -> Result<Vec<Status>, Diagnostic> {
    let items = match &node.value {
        Value::Array(items) if !items.is_empty() => items,
        _ => std::slice::from_ref(node),
    };
    let status = |item: &Node| {
        let found = Status::FITTED.into_iter();
        let mut found = found.filter(|status| Some(status.name()) == item.string());
        found.next().ok_or_else(|| {
            let message = "fit.targets: expected \"given\", \"measured\" or a list of both";
            sources.diagnose(&item.origin, message)
        })
    };
    items.iter().map(status).collect()
}

impl Constant {
    fn read(
        sources: &Sources,
        path: &str,
        place: &crate::source::Origin,
        node: &Node,
    ) -> Result<Self, Diagnostic> {
        let wrong = |message: String| sources.diagnose(&node.origin, message);
        let known = keys::all().iter().find(|key| key.path == path);
        let Some(Allowed::Number(allowed)) = known.map(|key| &key.value) else {
            let numbers = keys::all().iter();
            let numbers = numbers.filter(|key| matches!(key.value, Allowed::Number(_)));
            let meant = suggest::name(path, numbers.map(|key| key.path.as_str()));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let message = format!("{path}: expected a key that takes a number{meant}");
            return Err(sources.diagnose(place, message));
        };
        super::only(sources, node, &KEYS, path)?;
        let number = |key: &str| node.get(key).and_then(Node::number);
        let (Some(from), Some(to), Some(start)) = (number("from"), number("to"), number("start"))
        else {
            return Err(wrong(format!("{path}: {EXPECTED}")));
        };
        let multiple_of = number("multiple_of").filter(|multiple| *multiple > 0.0);
        let whole = allowed.whole;
        let least = if whole { 1.0 } else { f64::MIN_POSITIVE };
        let least = multiple_of.unwrap_or(least);
        let step = number("step").unwrap_or(0.1 * start.abs()).max(least);
        let (fewest, most) = within(from, to, least);
        if !(from < to && fewest <= most && (from..=to).contains(&start) && step <= to - from) {
            let message = format!(
                "{path}: `start`, or a `step` from there, is not between {from} and {to}; {EXPECTED}"
            );
            return Err(wrong(message));
        }
        Ok(Self {
            path: path.to_owned(),
            from,
            to,
            start,
            step,
            whole,
            multiple_of,
        })
    }

    /// Returns the nearest accepted value.
    pub fn allowed(&self, value: f64) -> f64 {
        match self.multiple_of.or(self.whole.then_some(1.0)) {
            None => value.clamp(self.from, self.to),
            Some(multiple) => {
                let (least, most) = within(self.from, self.to, multiple);
                (value / multiple).round().clamp(least, most) * multiple
            }
        }
    }
}

/// Returns the smallest and the largest whole factor with which a multiple of `number` lies between `from` and `to`.
fn within(from: f64, to: f64, number: f64) -> (f64, f64) {
    ((from / number).ceil(), (to / number).floor())
}

//! Conditions that leave points out: `[[sweep.except]]`.

use super::super::keys;
use super::super::source::{Diagnostic, Sources};
use super::super::suggest;
use super::super::tree::{Node, Value};
use super::leaves;

/// A condition on points: all of these tests must hold.
#[derive(Clone, Debug)]
pub struct Condition(Vec<(String, Test)>);

/// A test of the value of a key.
#[derive(Clone, Debug)]
enum Test {
    /// The value is one of these.
    OneOf(Vec<Value>),
    /// The value is none of these.
    NoneOf(Vec<Value>),
    /// The value is a number strictly between these.
    Between(f64, f64),
}

/// Accepted values of a key in a condition.
const EXPECTED: &str =
    "expected a value, a list of values, or a table with `above`, `below` or `not`";

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// Fails if the node is not a condition, or if it names an unknown key.
    pub fn read(sources: &Sources, node: &Node) -> Result<Self, Diagnostic> {
        let tests = leaves(sources, node, &is_test)?.into_iter().map(|leaf| {
            let is_key = keys::all().iter().any(|key| key.path == leaf.path);
            if leaf.path != "name" && !is_key {
                let known = keys::all().iter().map(|key| key.path.as_str());
                let meant = suggest::name(&leaf.path, known);
                let meant =
                    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
                let message = format!("unknown key `{}`{meant}", leaf.path);
                return Err(sources.diagnose(&leaf.key, message));
            }
            let test = Test::read(leaf.node);
            let test = test.ok_or_else(|| {
                sources.diagnose(&leaf.node.origin, format!("{}: {EXPECTED}", leaf.path))
            })?;
            Ok((leaf.path, test))
        });
        let tests: Vec<_> = tests.collect::<Result<_, _>>()?;
        match tests.is_empty() {
            true => Err(sources.diagnose(
                &node.origin,
                "expected conditions, each a key with its value",
            )),
            false => Ok(Self(tests)),
        }
    }

    /// Returns the keys of the condition.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _)| path.as_str())
    }

    /// Returns whether the condition holds, where `value` returns the value of each key.
    pub fn holds<'a>(&self, value: impl Fn(&str) -> Option<&'a Node>) -> bool {
        let is_so =
            |(path, test): &(String, Test)| value(path).is_some_and(|node| test.is_so(&node.value));
        self.0.iter().all(is_so)
    }
}

/// Returns whether a table is a test of a key, and not a table of keys.
fn is_test(node: &Node) -> bool {
    let keys = ["above", "below", "not"];
    let table = node.table().filter(|table| !table.is_empty());
    table.is_some_and(|table| table.keys().all(|key| keys.contains(&key.as_str())))
}

impl Test {
    fn read(node: &Node) -> Option<Self> {
        let Some(table) = node.table() else {
            return Some(Self::OneOf(values(node)));
        };
        let bound = |key: &str| node.get(key).map(Node::number);
        match (bound("above"), bound("below"), node.get("not")) {
            (None, None, Some(not)) if table.len() == 1 => Some(Self::NoneOf(values(not))),
            (None, None, _) | (_, _, Some(_)) => None,
            (above, below, None) => {
                let above = above.unwrap_or(Some(f64::NEG_INFINITY))?;
                Some(Self::Between(above, below.unwrap_or(Some(f64::INFINITY))?))
            }
        }
    }

    fn is_so(&self, value: &Value) -> bool {
        match self {
            Self::OneOf(values) => values.iter().any(|one| equal(one, value)),
            Self::NoneOf(values) => !values.iter().any(|one| equal(one, value)),
            Self::Between(above, below) => value
                .number()
                .is_some_and(|number| number > *above && number < *below),
        }
    }
}

fn values(node: &Node) -> Vec<Value> {
    match &node.value {
        Value::Array(items) => items.iter().map(|item| item.value.clone()).collect(),
        value => vec![value.clone()],
    }
}

/// Compares two values, numbers regardless of their type: 1 equals 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one.number(), other.number()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

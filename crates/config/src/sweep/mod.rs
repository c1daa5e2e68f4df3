//! `[sweep]`: the runs of a study.
//!
//! Each key is an axis: a list of values, or a range. Points are all combinations for each variant of the file; the last axis varies
//! fastest. Keys under one `[[sweep.zip]]` are one axis: they take their first values together, then their second ones, and so on; `names`
//! are the names of these steps in tables. `[[sweep.except]]` leaves points out.

mod condition;
pub mod range;

use super::keys::{self, Allowed};
use super::source::{Diagnostic, Origin, Sources};
use super::tree::{Node, Value};
pub use condition::Condition;

/// The content of `[sweep]`.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Axes, in the order of the file.
    pub axes: Vec<Axis>,
    /// Conditions for points that are left out.
    except: Vec<Condition>,
    /// Runs of each point, with consecutive seeds.
    pub seeds: u64,
    /// Whether given logs become additional variants, instead of the workload of all points.
    pub logs_beside: bool,
}

/// Keys that take values together, and these values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The keys, and where they were written.
    pub keys: Vec<(String, Origin)>,
    /// Whether each key has minimum values, which apply only if no larger value is set elsewhere.
    least: Vec<bool>,
    /// For each step, a value for each key.
    steps: Vec<Vec<Node>>,
    /// Names of the steps; empty if the values serve as names.
    names: Vec<String>,
}

/// Maximum number of points of a study.
const MOST_POINTS: usize = 1_000_000;

/// A value in a tree of tables.
pub struct Leaf<'a> {
    /// Path of the value.
    pub path: String,
    /// Where the key was written.
    pub key: Origin,
    /// The value.
    pub node: &'a Node,
}

/// One point, with one seed.
impl Default for Sweep {
    fn default() -> Self {
        Self {
            axes: Vec::new(),
            except: Vec::new(),
            seeds: 1,
            logs_beside: false,
        }
    }
}

impl Sweep {
    /// Reads `[sweep]`.
    ///
    /// # Errors
    /// Fails if the table cannot be used.
    pub fn read(sources: &Sources, mut node: Node) -> Result<Self, Diagnostic> {
        if node.table().is_none() {
            return Err(sources.diagnose(&node.origin, "sweep: expected a table, [sweep]"));
        }
        let seeds = match node.take("seeds").map(|entry| entry.node) {
            None => 1,
            Some(node) => match node.value {
                Value::Integer(seeds @ 1..=1_000_000) => seeds as u64,
                _ => {
                    let message = "sweep.seeds: expected a whole number from 1 to 1000000";
                    return Err(sources.diagnose(&node.origin, message));
                }
            },
        };
        let logs = node.take("logs").map(|entry| entry.node);
        if let Some(node) = logs.as_ref().filter(|node| node.string() != Some("beside")) {
            let message =
                "sweep.logs: expected \"beside\", which makes each given log a variant of its own";
            return Err(sources.diagnose(&node.origin, message));
        }
        let zips = tables(sources, &mut node, "zip")?;
        let except = tables(sources, &mut node, "except")?;
        let except = except.iter().map(|table| Condition::read(sources, table));
        let node = node.expand_dots();
        let mut axes = Vec::new();
        for leaf in leaves(sources, &node, &is_values)? {
            axes.push(Axis::of_one(sources, &leaf)?);
        }
        for zip in &zips {
            axes.push(Axis::of_several(sources, zip)?);
        }
        axes.sort_by_key(|axis| axis.keys.first().map(|(_, origin)| sources.start(origin)));
        twice(sources, &axes)?;
        let sweep = Self {
            axes,
            except: except.collect::<Result<_, _>>()?,
            seeds,
            logs_beside: logs.is_some(),
        };
        let mut points = sweep.axes.iter().map(|axis| axis.steps.len());
        let points = points.try_fold(1usize, usize::checked_mul);
        if points.is_none_or(|points| points > MOST_POINTS) {
            let message = format!("has too many points; expected at most {MOST_POINTS}");
            return Err(sources.diagnose(&sweep.axes[0].keys[0].1, message));
        }
        Ok(sweep)
    }

    /// Returns all swept keys, and where they were written.
    pub fn keys(&self) -> impl Iterator<Item = &(String, Origin)> {
        self.axes.iter().flat_map(|axis| &axis.keys)
    }

    /// Removes all keys of this table from the sweep.
    pub fn leave(&mut self, table: &str) {
        let of_table = |(path, _): &(String, Origin)| path.split('.').next() == Some(table);
        self.axes.retain(|axis| !axis.keys.iter().any(of_table));
    }

    /// Returns the swept keys that may not be set elsewhere.
    pub fn own_keys(&self) -> impl Iterator<Item = &(String, Origin)> {
        let keys = self
            .axes
            .iter()
            .flat_map(|axis| axis.keys.iter().zip(&axis.least));
        keys.filter(|(_, is_least)| !**is_least).map(|(key, _)| key)
    }

    /// Returns the number of combinations.
    pub fn combinations(&self) -> usize {
        self.axes.iter().map(|axis| axis.steps.len()).product()
    }

    /// Returns the step of a combination on each axis, the last axis first.
    fn steps(&self, number: usize) -> impl Iterator<Item = (&Axis, usize)> {
        let mut rest = number;
        self.axes.iter().rev().map(move |axis| {
            let step = rest % axis.steps.len();
            rest /= axis.steps.len();
            (axis, step)
        })
    }

    /// Returns the layer of a combination. `said` returns the value that is otherwise set for a key.
    pub fn combination<'a>(
        &self,
        number: usize,
        origin: &Origin,
        said: impl Fn(&str) -> Option<&'a Node>,
    ) -> Node {
        let mut layer = Node::empty(origin.clone());
        for (axis, step) in self.steps(number) {
            let keys = axis.keys.iter().zip(&axis.least);
            for (((path, key), is_least), value) in keys.zip(&axis.steps[step]) {
                let is_enough =
                    *is_least && said(path).is_some_and(|said| said.number() >= value.number());
                if !is_enough {
                    layer.merge(Node::at_path(path, value.clone()).with_keys_at(path, key));
                }
            }
        }
        layer
    }

    /// Returns the names of a combination's steps, axis by axis, where they have names.
    pub fn names(&self, number: usize) -> Vec<Option<String>> {
        let names = self.steps(number);
        let names = names.map(|(axis, step)| axis.names.get(step).cloned());
        let mut names: Vec<_> = names.collect();
        names.reverse();
        names
    }

    /// Returns whether a point is left out, where `value` returns the value of each key.
    pub fn leaves_out<'a>(&self, value: impl Fn(&str) -> Option<&'a Node>) -> bool {
        self.except.iter().any(|condition| condition.holds(&value))
    }
}

impl Axis {
    /// Returns whether the axis has this key.
    pub fn has(&self, path: &str) -> bool {
        self.keys.iter().any(|key| key.0 == path)
    }

    fn of_one(sources: &Sources, leaf: &Leaf<'_>) -> Result<Self, Diagnostic> {
        let (steps, is_least) = values(sources, leaf)?;
        let steps = steps.into_iter();
        Ok(Self {
            keys: vec![(leaf.path.clone(), leaf.key.clone())],
            least: vec![is_least],
            steps: steps.map(|value| vec![value]).collect(),
            names: Vec::new(),
        })
    }

    fn of_several(sources: &Sources, table: &Node) -> Result<Self, Diagnostic> {
        let (mut keys, mut least) = (Vec::new(), Vec::new());
        let mut steps: Vec<Vec<Node>> = Vec::new();
        let mut table = table.clone();
        let names = table.take("names").map(|entry| entry.node);
        for leaf in leaves(sources, &table, &is_values)? {
            let (values, is_least) = values(sources, &leaf)?;
            least.push(is_least);
            if keys.is_empty() {
                steps = vec![Vec::new(); values.len()];
            } else if steps.len() != values.len() {
                let (first, _) = &keys[0];
                let message = format!(
                    "{}: has {} values; expected {}, as many as {first}, with which it is zipped",
                    leaf.path,
                    values.len(),
                    steps.len()
                );
                return Err(sources.diagnose(&leaf.node.origin, message));
            }
            for (step, value) in steps.iter_mut().zip(values) {
                step.push(value);
            }
            keys.push((leaf.path, leaf.key));
        }
        if keys.len() < 1 + usize::from(names.is_none()) {
            let message = "sweep.zip: expected two keys or more, each with a list of values; one is enough with `names`";
            return Err(sources.diagnose(&table.origin, message));
        }
        let names = names.map_or(Ok(Vec::new()), |node| names_of(sources, &node, steps.len()));
        Ok(Self {
            keys,
            least,
            steps,
            names: names?,
        })
    }
}

/// Reads the names of `steps` steps.
fn names_of(sources: &Sources, node: &Node, steps: usize) -> Result<Vec<String>, Diagnostic> {
    let names = match &node.value {
        Value::Array(items) => items.iter().map(Node::string).collect(),
        _ => None,
    };
    let names: Option<Vec<&str>> = names;
    let names = names.filter(|names| names.len() == steps).ok_or_else(|| {
        let message = format!("sweep.zip.names: expected {steps} texts, one for each step");
        sources.diagnose(&node.origin, message)
    })?;
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns the values of a key of `[sweep]`, and whether these are minimum values.
fn values(sources: &Sources, leaf: &Leaf<'_>) -> Result<(Vec<Node>, bool), Diagnostic> {
    let refuse =
        |why: &str| Err(sources.diagnose(&leaf.node.origin, format!("{}: {why}", leaf.path)));
    if ["name", "profile", "variants"].contains(&leaf.path.as_str()) {
        return refuse("cannot be swept; expected a key that `baton keys` shows, or [[variants]]");
    }
    if let Some(least) = leaf.node.get(AT_LEAST) {
        let items = match &least.value {
            Value::Array(items) => items.clone(),
            _ => Vec::new(),
        };
        let are_numbers = items.iter().all(|item| item.number().is_some());
        return match are_numbers && !items.is_empty() {
            true => Ok((items, true)),
            false => refuse("expected a list of numbers, as in { at_least = [200, 400] }"),
        };
    }
    let values = match &leaf.node.value {
        Value::Array(items) if items.is_empty() => return refuse("expected at least one value"),
        Value::Array(items) => items.clone(),
        Value::Table(_) => {
            let is_whole =
                |key: &keys::Key| matches!(&key.value, Allowed::Number(range) if range.whole);
            let key = keys::all().iter().find(|key| key.path == leaf.path);
            let whole = key.is_some_and(is_whole);
            range::values(sources, leaf.node, whole)?
        }
        _ => {
            return refuse(
                "expected a list of values, as in [200, 400], or a range; write a single value outside of [sweep]",
            );
        }
    };
    Ok((values, false))
}

/// Key whose values are minimum values.
const AT_LEAST: &str = "at_least";

/// Returns whether a table holds values, and not keys.
fn is_values(node: &Node) -> bool {
    range::is_range(node) || node.get(AT_LEAST).is_some()
}

/// Refuses keys that are swept twice.
fn twice(sources: &Sources, axes: &[Axis]) -> Result<(), Diagnostic> {
    let mut keys: Vec<&(String, Origin)> = axes.iter().flat_map(|axis| &axis.keys).collect();
    let place = |key: &&(String, Origin)| (key.0.clone(), sources.start(&key.1));
    keys.sort_by_key(place);
    match keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(()),
        Some(pair) => {
            let message = format!(
                "{} is already swept, {}",
                pair[1].0,
                sources.place(&pair[0].1)
            );
            Err(sources.diagnose(&pair[1].1, message))
        }
    }
}

/// Takes `[[sweep.NAME]]` out of `[sweep]`.
fn tables(sources: &Sources, sweep: &mut Node, name: &str) -> Result<Vec<Node>, Diagnostic> {
    let Some(entry) = sweep.take(name) else {
        return Ok(Vec::new());
    };
    let is_table = |item: &Node| item.table().is_some();
    match entry.node.value {
        Value::Array(items) if items.iter().all(is_table) => {
            Ok(items.into_iter().map(Node::expand_dots).collect())
        }
        _ => {
            let message = format!("expected one or more tables [[sweep.{name}]]");
            Err(sources.diagnose(&entry.node.origin, message))
        }
    }
}

/// Returns all values in a table and in the tables inside it. Tables that are values themselves are not entered.
pub fn leaves<'a>(
    sources: &Sources,
    node: &'a Node,
    is_value: &dyn Fn(&Node) -> bool,
) -> Result<Vec<Leaf<'a>>, Diagnostic> {
    let mut found = Vec::new();
    let mut tables = vec![(String::new(), node)];
    while let Some((above, node)) = tables.pop() {
        for (key, entry) in node.table().into_iter().flatten() {
            let path = match above.as_str() {
                "" => key.clone(),
                above => format!("{above}.{key}"),
            };
            match entry.node.table() {
                Some(table) if table.is_empty() => {
                    return Err(sources.diagnose(
                        &entry.key,
                        format!("{path}: is an empty table; expected keys in it"),
                    ));
                }
                Some(_) if !is_value(&entry.node) => tables.push((path, &entry.node)),
                _ => found.push(Leaf {
                    path,
                    key: entry.key.clone(),
                    node: &entry.node,
                }),
            }
        }
    }
    found.sort_by_key(|leaf| sources.start(&leaf.key));
    Ok(found)
}

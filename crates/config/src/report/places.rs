//! Conditions that identify points of a study, and the points that they identify.

use crate::source::{Diagnostic, Sources};
use crate::sweep::{Condition, Sweep};
use crate::tree::Node;
use baton_study::table::Cell;

/// Conditions, which are referred to by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<Condition>);

/// The properties that distinguish a point, and the conditions that hold there.
#[derive(Clone, Debug)]
pub struct Found {
    pub variant: Option<String>,
    /// Names of the steps of the axes.
    pub names: Vec<Option<String>>,
    /// Values of the study's columns.
    pub values: Vec<Cell>,
    pub holds: Vec<bool>,
}

impl Places {
    /// Reads a condition, if there is one, and returns its number.
    ///
    /// # Errors
    /// Fails if the node is not a condition.
    pub fn read(
        &mut self,
        sources: &Sources,
        node: Option<&Node>,
    ) -> Result<Option<usize>, Diagnostic> {
        let Some(node) = node else { return Ok(None) };
        self.0.push(Condition::read(sources, node)?);
        Ok(Some(self.0.len() - 1))
    }

    /// Returns which conditions hold, where `value` returns the value of each key.
    pub fn hold<'a>(&self, value: impl Fn(&str) -> Option<&'a Node>) -> Vec<bool> {
        let holds = |condition: &Condition| condition.holds(&value);
        self.0.iter().map(holds).collect()
    }

    /// Returns the point that meets condition `number` and differs from point `at` only in the keys that the condition names, or `None` if
    /// there is no such point or several. If the condition names a key that is not swept, the points are of variants that set the key and
    /// differ in nothing else.
    pub fn counterpart(
        &self,
        points: &[Found],
        at: usize,
        number: usize,
        (swept, columns): (&[Swept], &[String]),
    ) -> Option<usize> {
        let names = |key: &str| self.0[number].keys().any(|named| named == key);
        let here = &points[at];
        let is_swept = |key: &str| {
            swept
                .iter()
                .flat_map(|axis| &axis.keys)
                .any(|(path, _)| path == key)
        };
        let by_variants = self.0[number]
            .keys()
            .any(|key| key != "name" && !is_swept(key));
        let differ_only_there = |point: &Found| {
            let mut values = columns.iter().zip(point.values.iter().zip(&here.values));
            values.all(|(path, (there, here))| there == here || names(path))
        };
        // Keys that are zipped with a key that the condition names may differ too.
        let is_free = |axis: &&Swept| !axis.keys.iter().any(|(path, _)| names(path));
        let others: Vec<&Swept> = swept.iter().filter(is_free).collect();
        let same = |point: &Found| {
            let mut columns = others.iter().flat_map(|axis| &axis.keys);
            let is_variant = match by_variants {
                true => differ_only_there(point),
                false => point.variant == here.variant,
            };
            (names("name") || is_variant)
                && columns.all(|&(_, column)| point.values[column] == here.values[column])
        };
        let mut found =
            (0..points.len()).filter(|&point| points[point].holds[number] && same(&points[point]));
        found.next().filter(|_| found.next().is_none())
    }
}

/// Keys that are swept together, with the indices of their columns in the study.
#[derive(Clone, Debug)]
pub struct Swept {
    pub keys: Vec<(String, usize)>,
}

/// Returns the keys that a study sweeps; each of them has a column.
pub fn swept(sweep: &Sweep, columns: &[String]) -> Vec<Swept> {
    let column = |path: &String| columns.iter().position(|column| column == path);
    let axes = sweep.axes.iter().map(|axis| {
        let keys = axis.keys.iter();
        let keys = keys.filter_map(|(path, _)| Some((path.clone(), column(path)?)));
        Swept {
            keys: keys.collect(),
        }
    });
    axes.collect()
}

//! Conditions that tell points of a study, and the points that they tell.

use crate::source::{Diagnostic, Sources};
use crate::sweep::{Condition, Sweep};
use crate::tree::Node;
use baton_study::table::Cell;

/// Conditions, by numbers.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<Condition>);

/// What tells a point from the others, and which conditions hold there.
#[derive(Clone, Debug)]
pub struct Found {
    pub variant: Option<String>,
    /// What the steps of axes are called.
    pub names: Vec<Option<String>>,
    /// By the study's columns.
    pub values: Vec<Cell>,
    pub holds: Vec<bool>,
}

impl Places {
    /// Reads a condition, if there is one, and gives it a number.
    ///
    /// # Errors
    /// It is none.
    pub fn read(
        &mut self,
        sources: &Sources,
        node: Option<&Node>,
    ) -> Result<Option<usize>, Diagnostic> {
        let Some(node) = node else { return Ok(None) };
        self.0.push(Condition::read(sources, node)?);
        Ok(Some(self.0.len() - 1))
    }

    /// Which of them hold where `value` gives the value of each key.
    pub fn hold<'a>(&self, value: impl Fn(&str) -> Option<&'a Node>) -> Vec<bool> {
        let holds = |condition: &Condition| condition.holds(&value);
        self.0.iter().map(holds).collect()
    }

    /// The point that differs from point `at` only in what condition `number` names, which holds there. None if there is none, or several.
    /// Where it names a key that is not swept, variants set that, and differ in nothing else.
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
        // Keys that are zipped with one that it names go with that.
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

/// Keys that are swept together, with their columns among the study's.
#[derive(Clone, Debug)]
pub struct Swept {
    pub keys: Vec<(String, usize)>,
}

/// What a study sweeps; all that is swept has a column.
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

//! Plans all runs of a study from an experiment file with `[sweep]`.

use super::base::{self, Base};
use super::effects::Effects;
use super::keys::{self, Allowed};
use super::report::{self, Places, ReportPlan};
use super::source::{Diagnostic, Sources};
use super::sweep::Sweep;
use super::tree::{Node, Value};
use super::variants::Variant;
use super::{Request, complete, flag_layer};
use crate::failure::Failure;
use baton_sim::config::Experiment;
use baton_study::ConfigColumn;
use baton_study::table::{Cell, Kind};
use std::borrow::Cow;
use std::thread;

/// All runs of a study.
#[derive(Clone, Debug)]
pub struct StudyPlan {
    /// Name of the study, which is valid as a file name.
    pub name: String,
    /// Keys that the study sets.
    pub columns: Vec<ConfigColumn>,
    /// The points; all seeds of a point follow each other.
    pub points: Vec<Point>,
    /// Combinations that `[[sweep.except]]` leaves out.
    pub left_out: usize,
    /// The report on the study.
    pub report: ReportPlan,
    /// Notes for the user before the runs.
    pub notes: Vec<String>,
    /// Messages about keys that were set but change nothing in any run.
    pub without_effect: Vec<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of the variant, if there are variants.
    pub variant: Option<String>,
    /// The experiment to run.
    pub experiment: Experiment,
    /// The study's name for the value on each axis, where it has one.
    pub(super) names: Vec<Option<String>>,
    /// The value of each of the study's columns.
    pub values: Vec<Cell>,
    /// Which conditions of the report hold.
    pub(super) holds: Vec<bool>,
}

/// Plans a study on at most `threads` threads, because complete experiments are large.
///
/// # Errors
/// Fails if the user's input cannot be used.
pub fn study(request: &Request, threads: usize) -> Result<StudyPlan, Failure> {
    let mut sources = Sources::new();
    let mut notes = Vec::new();
    let mut base = base::load(&mut sources, request, &mut notes)?;
    let bad = |diagnostic: Diagnostic| Failure::BadInput(diagnostic.to_string());
    if base.sweep.is_none() {
        notes.push(format!(
            "{} has no table [sweep], which says what to vary: only its variants are run.",
            request.experiment
        ));
    }
    let sweep = base
        .sweep
        .take()
        .map(|entry| Sweep::read(&sources, entry.node));
    let mut sweep = sweep.transpose().map_err(bad)?.unwrap_or_default();
    sweep.seeds = request.seeds.unwrap_or(sweep.seeds);
    let mut request = Cow::Borrowed(request);
    if sweep.logs_beside {
        let logs = request.to_mut().take_logs();
        let logs = logs.iter().map(|log| log.variant(&mut sources));
        base.variants.splice(0..0, logs.collect::<Vec<_>>());
    } else if request.log.is_some()
        && base.document.get("workload.kind").and_then(Node::string) != Some("log")
    {
        // The log replaces the workload of all points.
        sweep.leave("workload");
    }
    let flags = flag_layer(&mut sources, &request);
    let name = base
        .document
        .get("name")
        .and_then(Node::string)
        .unwrap_or(&request.experiment);
    let name = file_name(name);
    let measured = request.measured.as_deref();
    let report = report::Draft::read(&mut sources, &base.report, measured, &name, &sweep)?;
    let planner = Planner {
        sources: &sources,
        base: &base,
        places: &report.places,
        sweep: &sweep,
        flags: &flags,
        columns: columns_of(&base, &sweep, &flags),
    };
    planner.check().map_err(bad)?;
    let (mut points, effects) = planner.points(threads).map_err(bad)?;
    let wanted = base.variants.len() * sweep.combinations();
    let left_out = wanted - points.len();
    if points.is_empty() {
        return Err(Failure::BadInput(format!(
            "{}: [[sweep.except]] leaves out all {wanted} points; expected at least one to remain",
            request.experiment
        )));
    }
    let paths = planner.columns;
    let columns = paths.iter().enumerate();
    let columns = columns.map(|(number, path)| ConfigColumn {
        path: path.clone(),
        kind: unite(
            path,
            points.iter_mut().map(|point| &mut point.values[number]),
        ),
    });
    let columns = columns.collect();
    let is_part = !(request.variants.is_empty() && request.settings.is_empty());
    let told_by = (&sweep, &paths[..]);
    let (report, homeless) = report
        .resolve(&sources, &name, &points, told_by, is_part)
        .map_err(bad)?;
    if homeless > 0 {
        notes.push(format!(
            "{homeless} published numbers are left out, because they belong to no run of the study as it was requested."
        ));
    }
    Ok(StudyPlan {
        name,
        columns,
        points: points
            .into_iter()
            .flat_map(|point| with_seeds(point, sweep.seeds))
            .collect(),
        left_out,
        report,
        notes,
        without_effect: effects.without(),
    })
}

/// Turns a name into a valid file name.
pub(super) fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    let name: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    match name.trim_matches(['.', ' ']) {
        "" => "study".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the keys that any run sets, except the name and the seed, which always have columns.
fn columns_of(base: &Base, sweep: &Sweep, flags: &Node) -> Vec<String> {
    let variants = base
        .variants
        .iter()
        .flat_map(|variant| variant.layer.paths());
    let mut paths: Vec<String> = base.document.paths();
    paths.extend(variants);
    paths.extend(sweep.keys().map(|(path, _)| path.clone()));
    paths.extend(flags.paths());
    paths.sort();
    paths.dedup();
    paths.retain(|path| path != "name" && path != "run.seed" && !path.is_empty());
    paths
}

fn with_seeds(point: Point, seeds: u64) -> impl Iterator<Item = Point> {
    (0..seeds).map(move |later| {
        let mut point = point.clone();
        point.experiment.run.seed = point.experiment.run.seed.wrapping_add(later);
        point
    })
}

struct Planner<'a> {
    sources: &'a Sources,
    base: &'a Base,
    sweep: &'a Sweep,
    places: &'a Places,
    flags: &'a Node,
    columns: Vec<String>,
}

impl Planner<'_> {
    /// Refuses swept keys that a variant or a flag sets too.
    fn check(&self) -> Result<(), Diagnostic> {
        for (path, key) in self.sweep.own_keys() {
            let layers = self
                .base
                .variants
                .iter()
                .map(|variant| &variant.layer)
                .chain([self.flags]);
            for layer in layers {
                if let Some(node) = layer.get(path) {
                    let swept = self.sources.place(key);
                    let message =
                        format!("{path}: is already swept, {swept}; expected another key here");
                    return Err(self.sources.diagnose(&node.origin, message));
                }
            }
        }
        Ok(())
    }

    /// Returns all points in order, and the effects of their keys.
    fn points(&self, threads: usize) -> Result<(Vec<Point>, Effects), Diagnostic> {
        let combinations = self.sweep.combinations();
        let all = combinations * self.base.variants.len();
        let each = all.div_ceil(threads.max(1));
        let part = |first: usize| -> Result<(Vec<Point>, Effects), Diagnostic> {
            let mut points = Vec::new();
            let mut effects = Effects::default();
            for number in first..(first + each).min(all) {
                let variant = &self.base.variants[number / combinations];
                points.extend(self.point(variant, number % combinations, &mut effects)?);
            }
            Ok((points, effects))
        };
        let parts = thread::scope(|scope| {
            let parts = (0..all)
                .step_by(each)
                .map(|first| scope.spawn(move || part(first)));
            let parts: Vec<_> = parts.collect();
            let joined = parts
                .into_iter()
                .map(|part| part.join().expect("planning does not panic"));
            joined.collect::<Result<Vec<_>, Diagnostic>>()
        })?;
        let mut all = (Vec::new(), Effects::default());
        for (points, effects) in parts {
            all.0.extend(points);
            all.1.join(effects);
        }
        Ok(all)
    }

    /// Returns a point, unless it is left out.
    fn point(
        &self,
        variant: &Variant,
        combination: usize,
        effects: &mut Effects,
    ) -> Result<Option<Point>, Diagnostic> {
        let mut own = self.base.document.clone();
        own.lay_over(variant.layer.clone());
        own.lay_over(self.flags.clone());
        let said = |path: &str| own.get(path).or_else(|| self.base.machine.get(path));
        let swept = self.sweep.combination(combination, &own.origin, said);
        own.lay_over(swept);
        let value = |path: &str| own.get(path).or_else(|| self.base.machine.get(path));
        if self.sweep.leaves_out(value) {
            return Ok(None);
        }
        let holds = self.places.hold(value);
        let values = self.columns.iter();
        let values = values
            .map(|path| value(path).map_or(Cell::Nothing, cell))
            .collect();
        let mut planned = complete(self.sources, self.base, own.clone(), variant.name.is_some())?;
        if planned.replays_a_log() {
            planned.measure_long_enough();
        }
        effects.see(&planned);
        Ok(Some(Point {
            variant: variant.name.clone(),
            experiment: planned.experiment,
            names: self.sweep.names(combination),
            values,
            holds,
        }))
    }
}

/// Converts a value into a cell of a table.
fn cell(node: &Node) -> Cell {
    match &node.value {
        Value::Boolean(truth) => Cell::Boolean(*truth),
        Value::Integer(number) => Cell::Integer(*number),
        Value::Float(number) => Cell::number(*number),
        Value::String(text) | Value::Datetime(text) => Cell::text(text),
        Value::Array(_) | Value::Table(_) => Cell::text(node.to_toml().to_string()),
    }
}

/// Converts all values of a column to the same kind, and returns the kind.
fn unite<'a>(path: &str, cells: impl Iterator<Item = &'a mut Cell>) -> Kind {
    let cells: Vec<&mut Cell> = cells.filter(|cell| **cell != Cell::Nothing).collect();
    let all = |is: fn(&Cell) -> bool| cells.iter().all(|cell| is(cell));
    let has_fractions =
        |key: &keys::Key| matches!(&key.value, Allowed::Number(range) if !range.whole);
    let has_fractions = keys::all()
        .iter()
        .any(|key| key.path == path && has_fractions(key));
    if cells.is_empty() {
        return Kind::Text;
    }
    if all(|cell| matches!(cell, Cell::Boolean(_))) {
        return Kind::Boolean;
    }
    if all(|cell| matches!(cell, Cell::Integer(_))) && !has_fractions {
        return Kind::Integer;
    }
    if all(|cell| cell.as_number().is_some()) {
        for cell in cells {
            *cell = cell.as_number().map_or(Cell::Nothing, Cell::Number);
        }
        return Kind::Number;
    }
    for cell in cells {
        *cell = Cell::text(cell.to_string());
    }
    Kind::Text
}

//! Turns the user's input into experiments that can run.
//!
//! There are several layers, each of which overrides the one before: the program's defaults, a profile (a machine), an experiment file or a
//! shorthand, one of the file's variants, the flags. They are joined as trees that remember where each value was written, so that an error
//! in the joined tree still points to a file and line, or to a flag.
//!
//! | to find | look in |
//! |---|---|
//! | the function that joins the layers | [`plan()`] |
//! | machines, NICs and hosts by name or path | [`parts`] |
//! | a layer: profile, file, shorthand, variants, flags | `machine.rs`, `base.rs`, `shorthand.rs`, `variants.rs`, `setting.rs` in `src/` |
//! | experiments and profiles that ship with the program | [`shipped`] |
//! | all keys, with their meanings, ranges and conditions | [`keys`] |
//! | places of values, and errors that point to them | `src/tree.rs`, `src/source.rs`, `src/de.rs` |
//! | the runs of a study (`[sweep]`) | [`StudyPlan`], `src/sweep/` |
//! | published numbers, tables, fits and figures of a study | [`ReportPlan`], [`FigurePlan`], `src/report/` |
//! | an experiment file that reproduces runs | [`to_text`] |

mod base;
mod command;
mod count;
mod de;
mod effects;
mod failure;
mod figure;
pub mod keys;
mod machine;
pub mod parts;
mod report;
mod runs;
mod setting;
pub mod shipped;
mod shorthand;
mod source;
mod study;
pub mod suggest;
mod sweep;
mod text;
mod tree;
mod units;
mod variants;

pub use command::command_line;
pub use count::count;
pub use failure::{Failure, reason};
pub use figure::FigurePlan;
pub use report::{
    Constant, FitPlan, Form, Number, ReportPlan, ReportPoint, Status, TablePlan, Tolerance,
};
pub use runs::{PROGRAM, attempt, outcome, reads_standard_input};
pub use setting::Setting;
pub use study::{Point, StudyPlan, study};
pub use text::{complete_text, to_text};

use base::Base;
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_workload::Preset;
use de::{Mismatch, Wrong};
use effects::Effects;
use serde::Deserialize;
use source::{Diagnostic, Kind, Origin, Sources};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use tree::{Node, Value};
use variants::Variant;

/// Commit that the program was built from.
pub const COMMIT: &str = env!("BATON_COMMIT");

/// Digest of all sources that determine results: programs with equal digests give equal results.
pub const SOURCES: &str = env!("BATON_SOURCES");

/// The user's request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A path or a shorthand. For an experiment that is given as text, its name in errors.
    pub experiment: String,
    /// Content of the experiment file, if there is no file. Paths in it are relative to the current folder.
    pub text: Option<String>,
    /// Name or path of a profile that replaces the experiment's own.
    pub profile: Option<String>,
    /// A log to replay instead of the experiment's own workload or, in a study that says so, in addition to its workloads.
    pub log: Option<PathBuf>,
    /// Further logs, for a study that runs logs in addition to its own loads.
    pub logs: Vec<GivenLog>,
    /// Single values, in order.
    pub settings: Vec<Setting>,
    /// Variants to run; empty: all.
    pub variants: Vec<String>,
    /// Runs of each point of a study, instead of the number in the study.
    pub seeds: Option<u64>,
    /// The user's measurements for a study, to compare with in addition to the published numbers.
    pub measured: Option<PathBuf>,
}

/// A log that a study runs in addition to its own loads.
#[derive(Clone, Debug)]
pub struct GivenLog {
    /// Name of its variant.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Settings for reading the log.
    pub reading: Vec<Setting>,
}

impl Request {
    /// Takes all logs, which the study is to run in addition to its own loads.
    fn take_logs(&mut self) -> Vec<GivenLog> {
        let mut logs = std::mem::take(&mut self.logs);
        if let Some(path) = self.log.take() {
            let settings = std::mem::take(&mut self.settings).into_iter();
            let (reading, others) = settings.partition(Setting::says_how_logs_are_read);
            self.settings = others;
            let name = path.file_name().unwrap_or(path.as_os_str());
            logs.push(GivenLog {
                name: name.to_string_lossy().into_owned(),
                path,
                reading,
            });
        }
        logs
    }
}

impl GivenLog {
    /// Returns the log as a variant.
    fn variant(&self, sources: &mut Sources) -> Variant {
        let mut layer = log_layer(sources, &self.path);
        for setting in &self.reading {
            layer.merge(setting.to_node(sources));
        }
        let name = Node {
            origin: layer.origin.clone(),
            value: Value::String(self.name.clone()),
        };
        layer.merge(Node::at_path("name", name));
        Variant {
            name: Some(self.name.clone()),
            layer,
        }
    }
}

/// Experiments that can run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runs, in the order of the file.
    pub runs: Vec<Planned>,
    /// Notes for the user before the runs.
    pub notes: Vec<String>,
}

/// Half of the 95 % interval to which a run is measured if the user specifies no length, per cent.
const UNTIL_CI_PERCENT: f64 = 1.0;

/// One experiment.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The complete experiment.
    pub experiment: Experiment,
    /// Whether the experiment is a variant of a file, with the name of the variant.
    pub is_variant: bool,
    /// Values for an experiment file: all values that neither the defaults nor the profile set.
    pub short: toml::Table,
    /// Keys that the user set.
    set: Vec<Set>,
}

/// A key that the user set.
#[derive(Clone, Debug)]
struct Set {
    path: String,
    /// The place, for messages.
    place: String,
    /// The layer.
    kind: Kind,
    /// Whether the machine has another value.
    is_change: bool,
}

impl Plan {
    /// Returns messages about keys that were set but change nothing in any run, because of the values of other keys.
    pub fn without_effect(&self) -> Vec<String> {
        let mut effects = Effects::default();
        self.runs.iter().for_each(|run| effects.see(run));
        effects.without()
    }

    /// Appends to the names of runs what flags change of the shorthand that names them. A shorthand says how its machine is set up.
    pub fn name_changes(&mut self) {
        for run in &mut self.runs {
            let changes = run.changes_of_shorthand();
            run.experiment.name.push_str(&changes);
        }
    }
}

impl Planned {
    /// Returns what flags change of the machine if the experiment is a shorthand, as in ` nic.mips=600`.
    fn changes_of_shorthand(&self) -> String {
        let is_shorthand = self.set.iter().any(|set| set.kind == Kind::Shorthand);
        let flags = self.set.iter().filter(|set| set.kind == Kind::Flag);
        let value = |set: &Set| {
            let mut keys = set.path.split('.');
            let first = self.short.get(keys.next()?)?;
            let value = keys.try_fold(first, |table, key| table.get(key))?;
            Some(format!(" {}={value}", set.path))
        };
        let is_of_machine = |set: &&Set| {
            let others = ["run.", "workload.", "load."];
            set.is_change && !others.iter().any(|other| set.path.starts_with(other))
        };
        match is_shorthand {
            true => flags.filter(is_of_machine).filter_map(value).collect(),
            false => String::new(),
        }
    }

    /// Returns whether a length of the run is given that replaces the usual length.
    pub fn says_how_long(&self) -> bool {
        let run = self.short.get("run").and_then(toml::Value::as_table);
        let says_how_long =
            |key: &String| key.starts_with("measured_") || key.starts_with("until_");
        run.is_some_and(|run| run.keys().any(says_how_long))
    }

    /// Measures until the result is precise enough, unless a length is given: how long that takes depends on the requests and the machine.
    pub fn measure_long_enough(&mut self) {
        if self.says_how_long() {
            return;
        }
        let run = self.short.entry("run").or_insert(toml::Table::new().into());
        if let Some(run) = run.as_table_mut() {
            self.experiment.run.until_ci_percent = Some(UNTIL_CI_PERCENT);
            run.insert("until_ci_percent".to_owned(), UNTIL_CI_PERCENT.into());
        }
    }

    /// Returns whether the experiment replays a log.
    pub fn replays_a_log(&self) -> bool {
        matches!(self.experiment.workload, WorkloadConfig::Log { .. })
    }
}

/// Joins all layers.
///
/// # Errors
/// Fails if the user's input cannot be used.
pub fn plan(request: &Request) -> Result<Plan, Failure> {
    let mut sources = Sources::new();
    let mut notes = Vec::new();
    let base = base::load(&mut sources, request, &mut notes)?;
    if let Some(of_study) = &base.sweep {
        let message = format!(
            "this makes a study of many runs; expected a single experiment, or `baton sweep {} --out DIR`",
            request.experiment
        );
        return Err(Failure::BadInput(
            sources.diagnose(&of_study.key, message).to_string(),
        ));
    }
    let flags = flag_layer(&mut sources, request);
    let runs = base
        .variants
        .iter()
        .map(|variant| {
            let mut own = base.document.clone();
            own.lay_over(variant.layer.clone());
            own.lay_over(flags.clone());
            complete(&sources, &base, own, variant.name.is_some())
                .map_err(|diagnostic| Failure::BadInput(diagnostic.to_string()))
        })
        .collect::<Result<_, _>>()?;
    Ok(Plan { runs, notes })
}

/// Returns the layer of the flags.
fn flag_layer(sources: &mut Sources, request: &Request) -> Node {
    let mut flags = Node::empty(Sources::default_origin());
    if let Some(path) = &request.log {
        flags.merge(log_layer(sources, path));
    }
    for setting in &request.settings {
        flags.merge(setting.to_node(sources));
    }
    flags
}

fn log_layer(sources: &mut Sources, path: &Path) -> Node {
    let name = format!("--log {}", path.display());
    let text = path.display().to_string();
    let source = sources.add(Kind::Flag, name, text.clone());
    let origin = Sources::at(source, 0..text.len());
    let mut layer = Node::at_path(
        "workload.kind",
        Node {
            origin: origin.clone(),
            value: Value::String("log".into()),
        },
    );
    layer.merge(Node::at_path(
        "workload.path",
        Node {
            origin,
            value: Value::String(text),
        },
    ));
    layer
}

/// Returns the only experiment of a request without variants.
///
/// # Errors
/// Fails if the request cannot be used.
pub fn plan_one(request: &Request) -> Result<Experiment, Failure> {
    match plan(request)?.runs.as_slice() {
        [run] => Ok(run.experiment.clone()),
        runs => Err(Failure::BadInput(format!(
            "{}: has {} variants; expected one run",
            request.experiment,
            runs.len()
        ))),
    }
}

/// Returns the machine of a profile, by name or path, without further layers.
///
/// # Errors
/// Fails if there is no such profile, or if it cannot be used.
pub fn profile(name: &str) -> Result<Experiment, Failure> {
    let mut sources = Sources::new();
    let request = Request {
        profile: Some(name.to_owned()),
        ..Request::default()
    };
    let document = Node::empty(Sources::default_origin());
    let folder = Path::new("");
    let (profile_name, machine) = machine::load(&mut sources, &request, None, &document, folder)?;
    let base = Base {
        profile_name,
        machine,
        document,
        variants: Vec::new(),
        sweep: None,
        report: report::Sections::default(),
    };
    complete(&sources, &base, base.document.clone(), false)
        .map(|planned| planned.experiment)
        .map_err(|diagnostic| Failure::BadInput(diagnostic.to_string()))
}

/// Overrides a machine with a document and makes an experiment of the result.
fn complete(
    sources: &Sources,
    base: &Base,
    own: Node,
    is_variant: bool,
) -> Result<Planned, Diagnostic> {
    let mut tree = base.machine.clone();
    tree.lay_over(own.clone());
    let mut with_parts = Cow::Borrowed(sources);
    parts::complete(&mut with_parts, &mut tree)?;
    let experiment = experiment_of(&with_parts, &tree)?;
    check_workload(sources, &tree, &experiment.workload)?;
    let mut short = match own.to_toml() {
        toml::Value::Table(table) => table,
        _ => toml::Table::new(),
    };
    let profile = toml::Value::String(base.profile_name.clone());
    short.insert("profile".to_owned(), profile);
    let set = own.paths().into_iter().map(|path| {
        let origin = own.origin_of(&path);
        let value = |tree: &Node| tree.get(&path).map(Node::to_toml);
        Set {
            place: sources.place(origin),
            kind: sources.source(origin).kind,
            is_change: value(&own) != value(&base.machine),
            path,
        }
    });
    Ok(Planned {
        experiment,
        is_variant,
        short,
        set: set.collect(),
    })
}

/// Makes an experiment of a tree that has all values.
fn experiment_of(sources: &Sources, tree: &Node) -> Result<Experiment, Diagnostic> {
    let explain = |mismatch| explain(sources, tree, &mismatch);
    let wrong = keys::out_of_range(tree).or_else(|| keys::of_another_kind(tree));
    wrong.map_or(Ok(()), |mismatch| Err(explain(mismatch)))?;
    let experiment = Experiment::deserialize(tree).map_err(explain)?;
    experiment.validate().map_err(|invalid| {
        let message = format!(
            "{}: found {}; expected {}",
            invalid.path, invalid.found, invalid.expected
        );
        sources.diagnose(blamed(sources, tree, &invalid.path), message)
    })?;
    Ok(experiment)
}

/// Returns the origin to blame for an impossible value at `path`: that of the value itself or, if a later layer sets another value in the
/// same table, that of the other value.
fn blamed<'a>(sources: &Sources, tree: &'a Node, path: &str) -> &'a Origin {
    let own = tree.origin_of(path);
    let beside = path
        .rsplit_once('.')
        .and_then(|(table, _)| tree.get(table)?.table());
    let origins = beside
        .into_iter()
        .flat_map(|table| table.values().map(|entry| &entry.node.origin));
    // The fold starts with the value itself, which stays unless another value is later.
    origins.fold(own, |latest, origin| {
        if sources.rank(origin) > sources.rank(latest) {
            origin
        } else {
            latest
        }
    })
}

/// Checks what the workload names: that a log can be opened, and that a preset exists.
fn check_workload(
    sources: &Sources,
    tree: &Node,
    workload: &WorkloadConfig,
) -> Result<(), Diagnostic> {
    match workload {
        WorkloadConfig::Log { path, .. } => check_readable(path).map_err(|reason| {
            let message = format!("{}: {reason}; expected an access log", path.display());
            sources.diagnose(tree.origin_of("workload.path"), message)
        }),
        WorkloadConfig::Generated { preset, .. } if Preset::from_name(preset).is_none() => {
            let known = Preset::ALL.map(Preset::name).join(", ");
            let message = format!("workload.preset: found {preset:?}; expected one of {known}");
            Err(sources.diagnose(tree.origin_of("workload.preset"), message))
        }
        _ => Ok(()),
    }
}

/// Checks that a log can be opened. Its content is checked when it is read.
fn check_readable(path: &Path) -> Result<(), String> {
    if path == Path::new("-") {
        return Ok(());
    }
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err("is a directory".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Describes an error in a tree, its place, and the key that may have been meant.
fn explain(sources: &Sources, tree: &Node, mismatch: &Mismatch) -> Diagnostic {
    let origin = mismatch.origin.as_ref().unwrap_or(&tree.origin);
    let message = match &mismatch.wrong {
        Wrong::UnknownKey { key, known } => {
            let mut known = known.clone();
            if mismatch.path.is_empty() {
                known.extend(["profile", "variants", "sweep"]);
                known.extend(["figure", "published", "table", "fit"]);
            }
            match suggest::nearest(key, &known, &mismatch.path, tree) {
                Some(meant) => format!("{}; did you mean `{meant}`?", mismatch.unknown_key()),
                None => mismatch.to_string(),
            }
        }
        _ => mismatch.to_string(),
    };
    sources.diagnose(origin, message)
}

#[cfg(test)]
mod tests;

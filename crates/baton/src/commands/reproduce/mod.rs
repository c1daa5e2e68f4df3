//! `baton reproduce`: runs published experiments again and compares the published numbers with the simulated ones.
//!
//! There is one module for each experiment; [`ALL`] lists them.

mod applications;
pub(super) mod batching;
mod correlation;
mod excerpts;
mod locality;
mod microbench;
mod study;

pub use batching::STUDIES as BATCHING_STUDIES;

use crate::beside;
use crate::cli::{BatchingArgs, LogArgs, ReproduceArgs};
use crate::config::{Setting, suggest};
use crate::failure::Failure;
use crate::output::{JsonOutput, PendingFigure, print, print_text, spare};
use crate::runner::Interrupt;
use baton_report::figure::{Figure, Size};
use serde::Serialize;
use std::path::Path;

/// A published experiment.
pub struct Reproduction {
    /// Name on the command line.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Whether the experiment has a figure.
    figure: bool,
    /// Function that runs the experiment.
    run: fn(&Context<'_>) -> Result<Outcome, Failure>,
}

/// All experiments that can be reproduced.
pub const ALL: [Reproduction; 14] = [
    study::HANDOFF_TABLE1,
    study::HANDOFF_POLICIES,
    study::HANDOFF_INTERFACE,
    study::MEMORY_MISSES,
    study::MEMORY_TCP,
    locality::REPRODUCTION,
    study::DCACHE_BUS,
    study::DCACHE_TRAFFIC,
    study::DCACHE_TABLE1,
    study::DCACHE_MODERN,
    batching::REPRODUCTION,
    microbench::REPRODUCTION,
    applications::REPRODUCTION,
    correlation::REPRODUCTION,
];

/// The user's options.
pub struct Context<'a> {
    log: Option<&'a Path>,
    /// Options for reading the log.
    reading: &'a LogArgs,
    /// Folder with public logs.
    data: Option<&'a Path>,
    /// A packet capture.
    trace: Option<&'a Path>,
    seed: u64,
    /// Numbers of warm-up packets and of measured packets, if the user specifies them.
    warmup: Option<u64>,
    measured: Option<u64>,
    batching: &'a BatchingArgs,
    threads: usize,
    interrupt: &'a Interrupt,
}

impl Context<'_> {
    /// Returns the settings for the length of a run, if the user specifies it.
    fn packets(&self) -> impl Iterator<Item = Setting> + use<> {
        let flags = [
            ("--warmup", "run.warmup_packets", self.warmup),
            ("--packets", "run.measured_packets", self.measured),
        ];
        let given = |(flag, path, value): (&str, &str, Option<u64>)| {
            Some(Setting::of_flag(flag, path, value?))
        };
        flags.into_iter().filter_map(given)
    }
}

/// Results of an experiment.
#[derive(Default)]
pub struct Outcome {
    /// Machine-readable rows.
    rows: Vec<AnyRow>,
    /// Text for people.
    text: String,
    /// Figure for `--figure`; `None` if there is none, or if the selected options have other figures.
    figure: Option<Figure>,
}

/// One metric of one configuration.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyRow {
    /// A row of an experiment in code.
    OfCode(Row),
    /// A row of a study file.
    OfStudy(beside::Row),
}

/// Converts rows of an experiment in code.
fn of_code(rows: impl IntoIterator<Item = Row>) -> Vec<AnyRow> {
    rows.into_iter().map(AnyRow::OfCode).collect()
}

/// One metric of one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    /// The configuration.
    pub(super) config: String,
    /// The metric, with its unit last.
    pub(super) metric: &'static str,
    /// The published value; `None` if there is none.
    pub(super) published: Option<f64>,
    /// The simulated value or, for an experiment on this machine, the measured value.
    pub(super) simulated: f64,
}

impl Row {
    /// Returns a row without a published value.
    pub(super) fn simulated(config: impl Into<String>, metric: &'static str, value: f64) -> Self {
        Self {
            config: config.into(),
            metric,
            published: None,
            simulated: value,
        }
    }
}

/// A row with a value from this machine instead of the simulator.
#[derive(Debug, Serialize)]
struct MeasuredRow<'a> {
    config: &'a str,
    metric: &'static str,
    published: Option<f64>,
    measured: f64,
}

impl<'a> MeasuredRow<'a> {
    fn of(row: &'a AnyRow) -> Option<Self> {
        let AnyRow::OfCode(row) = row else {
            return None;
        };
        Some(Self {
            config: &row.config,
            metric: row.metric,
            published: row.published,
            measured: row.simulated,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if a run fails, or if the user interrupts.
pub fn execute(arguments: &ReproduceArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let list = || {
        ALL.iter()
            .map(|r| format!("  {:20} {}\n", r.name, r.about))
            .collect::<String>()
    };
    let Some(name) = &arguments.name else {
        return print(&format!("What can be reproduced:\n{}", list()));
    };
    let reproduction = ALL.iter().find(|r| r.name == name).ok_or_else(|| {
        let list = list();
        let meant = suggest::name(name, ALL.iter().map(|one| one.name));
        Failure::BadInput(format!(
            "reproduce {name}: no such experiment{}; expected one of\n{}",
            meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?")),
            list.trim_end()
        ))
    })?;
    refuse_what_it_has_not(arguments, reproduction)?;
    if let Some(log) = &arguments.log {
        spare(log, "--json", arguments.json.as_deref())?;
    }
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let picture = arguments.figure.as_deref();
    let picture = picture.map(|path| PendingFigure::new(path, Size::default()));
    let picture = picture.transpose()?;
    let context = Context {
        log: arguments.log.as_deref(),
        reading: &arguments.reading,
        data: arguments.data.as_deref(),
        trace: arguments.trace.as_deref(),
        seed: arguments.seed.get(),
        warmup: arguments.warmup,
        measured: arguments.packets,
        batching: &arguments.batching,
        threads: arguments.threads.get(),
        interrupt,
    };
    let Outcome { rows, text, figure } = (reproduction.run)(&context)?;
    if let (Some(picture), Some(figure)) = (picture, figure) {
        picture.write(&figure)?;
    }
    match json {
        Some(json) if arguments.batching.measures_this_machine() => {
            let measured = rows.iter().filter_map(MeasuredRow::of);
            json.write(&measured.collect::<Vec<_>>(), &text)
        }
        Some(json) => json.write(&rows, &text),
        None => print_text(&text),
    }
}

/// Refuses options that this experiment does not have.
fn refuse_what_it_has_not(
    arguments: &ReproduceArgs,
    reproduction: &Reproduction,
) -> Result<(), Failure> {
    let name = reproduction.name;
    if arguments.figure.is_some() && !reproduction.figure {
        let drawn = ALL.iter().filter(|one| one.figure).map(|one| one.name);
        return Err(Failure::BadInput(format!(
            "--figure: {name} has no figure; {} have one",
            drawn.collect::<Vec<_>>().join(", ")
        )));
    }
    let studies = &arguments.batching.study;
    if arguments.figure.is_some() && (studies.len() > 1 || studies.iter().any(|one| one == "all")) {
        let message = "--figure: each study has its own figure; expected a single --study, or --out FOLDER for all figures";
        return Err(Failure::BadInput(message.to_owned()));
    }
    let is_batching = name == batching::REPRODUCTION.name;
    let only = &arguments.batching;
    let of_others = [
        ("--log", arguments.log.is_some()),
        ("--data", arguments.data.is_some()),
        ("--warmup", arguments.warmup.is_some()),
        ("--packets", arguments.packets.is_some()),
    ];
    let has_seeds = name == study::HANDOFF_POLICIES.name;
    let of_batching = [
        ("--live", only.measures_this_machine()),
        ("--study", !only.study.is_empty()),
        ("--profile", only.profile.is_some()),
        ("--seeds", only.seeds.is_some() && !has_seeds),
        ("--responses", only.responses.is_some()),
    ];
    let is_microbench = name == microbench::REPRODUCTION.name;
    let applications = [applications::REPRODUCTION, correlation::REPRODUCTION];
    let has_applications = applications.iter().any(|one| one.name == name);
    let mut given = Vec::new();
    if has_applications {
        given.push(("--warmup", arguments.warmup.is_some()));
    } else {
        given.push(("--trace", arguments.trace.is_some()));
    }
    if is_batching {
        given.extend(of_others);
    } else {
        given.extend(of_batching);
    }
    if is_microbench {
        // The only one of these options that nic-microbench has is --packets, the length of its trials.
        given.extend(
            of_others
                .into_iter()
                .filter(|(flag, _)| *flag != "--packets"),
        );
    }
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::BadInput(format!(
            "{flag}: {name} has no such option; see baton reproduce --help"
        ))),
    }
}

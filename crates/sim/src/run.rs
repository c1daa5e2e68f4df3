//! From an experiment to its results.

use crate::config::{Experiment, WorkloadConfig};
use crate::machine::names::snake_case;
use crate::machine::{Capture, Machine, Observer, RunError};
use crate::results::Results;
use baton_apps::symbolic;
use baton_workload::load::{Pace, Paced};
use baton_workload::log::{Logs, ReadOptions, Request, SkipReason, Skipped};
use baton_workload::{
    Fixed, GeneratorSpec, LoadSpec, Log, LogError, OnDemand, Order, Preset, RemoteFiles, Replay,
    SessionRule, SpecWeb, SpecWebSpec, Workload,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Facts about a workload.
pub type Facts = BTreeMap<String, Fact>;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// How many, or how much.
    Number(u64),
    /// How often, by reason.
    Counts(BTreeMap<String, u64>),
    /// In words.
    Words(String),
}

impl From<usize> for Fact {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<String> for Fact {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

/// The fact that holds what whoever believes the results must know about the log, a line each.
pub const WARNINGS: &str = "warnings";

/// Sources of connection scripts that can move between threads: one for each replayer, or one for all.
pub type Load = Vec<Box<dyn Workload + Send>>;

/// Runs `experiment` and measures it. `commit` is noted in the results; `captures` are written as it runs.
///
/// # Errors
/// The experiment or its workload cannot be, a capture cannot be written, an end-to-end check failed, or `observer`
/// cancelled the run.
pub fn run(
    experiment: &Experiment,
    commit: &str,
    captures: &[Capture],
    observer: &mut dyn Observer,
) -> Result<Results, RunError> {
    run_on(&Logs::new(), experiment, commit, captures, observer)
}

/// The same with logs that other runs have read, or will.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    logs: &Logs,
    experiment: &Experiment,
    commit: &str,
    captures: &[Capture],
    observer: &mut dyn Observer,
) -> Result<Results, RunError> {
    experiment.validate()?;
    let (load, facts) = load_workload(experiment, logs, &|| observer.cancelled())?;
    let machine = Machine::builder(experiment).load(load).captures(captures);
    let mut results = machine.build()?.run(commit, observer)?;
    results.workload = facts;
    Ok(results)
}

/// The workload that an experiment describes, dealt out to its replayers, and facts about it. While a log is read, `cancelled`
/// is asked now and then whether it is still wanted.
///
/// # Errors
/// A log that cannot be read or replayed, an unknown generator, or it was cancelled.
pub fn load_workload(
    experiment: &Experiment,
    logs: &Logs,
    cancelled: &dyn Fn() -> bool,
) -> Result<(Load, Facts), RunError> {
    let (load, log_rate, facts) = source(experiment, logs, cancelled)?;
    if experiment.load == LoadSpec::default() {
        return Ok((load, facts));
    }
    if experiment.load.needs_times() && experiment.workload.is_log() && log_rate.is_none() {
        let why = "all requests of the log were made at the same time; expected a log with times, or `load.arrivals`";
        return Err(RunError::Workload(why.to_owned()));
    }
    let shares = load.len();
    let paced = |(number, share): (u64, Box<dyn Workload + Send>)| {
        let pace = Pace {
            log_requests_per_s: log_rate,
            shares,
            seed: experiment.run.seed ^ ARRIVALS_SALT ^ number << 48,
        };
        Box::new(Paced::new(share, &experiment.load, pace)) as _
    };
    Ok(((0..).zip(load).map(paced).collect(), facts))
}

/// What sets the seed of arrivals apart from others.
const ARRIVALS_SALT: u64 = 0xa441_7a15;

/// A load without waits, or with those of the log if they are needed, and how many requests the log has a second.
type Source = (Load, Option<f64>, Facts);

fn source(
    experiment: &Experiment,
    logs: &Logs,
    cancelled: &dyn Fn() -> bool,
) -> Result<Source, RunError> {
    let timed = experiment.load.needs_times();
    let seed = experiment.run.seed;
    let replayers = experiment.clients.replayers;
    match &experiment.workload {
        WorkloadConfig::Log {
            path,
            format,
            allow_skipped,
            persistent_s,
            pipeline_s,
            order,
        } => {
            let options = ReadOptions {
                format: format.clone(),
                allow_skipped: *allow_skipped,
                cancelled: Some(cancelled),
            };
            let log = logs.read_with(path, &options).map_err(unread)?;
            let (log, left_out) = without_giants(&log)?;
            let mut facts = facts(&log);
            facts.insert("format".to_owned(), log.format.to_string().into());
            if log.forwarded > 0 {
                let of = format!("{} by X-Forwarded-For", log.forwarded);
                facts.insert("clients_of_requests".to_owned(), of.into());
            }
            let warnings = log.warnings();
            if !warnings.is_empty() {
                facts.insert(WARNINGS.to_owned(), warnings.join("\n").into());
            }
            facts.insert("log".to_owned(), path.display().to_string().into());
            facts.insert("skipped".to_owned(), skipped(&log.skipped));
            let left_out_name = "responses_of_2_gib_or_more_left_out";
            facts.insert(left_out_name.to_owned(), left_out.into());
            let rule = rule(*persistent_s, *pipeline_s);
            let drawn = (*order == Order::Drawn).then_some(seed);
            let (load, rate) = replay(&log, rule, replayers, drawn, timed)?;
            Ok((load, rate, facts))
        }
        WorkloadConfig::Generated {
            preset,
            requests,
            persistent_s,
            pipeline_s,
        } => {
            let preset = named(preset)?;
            let rule = rule(*persistent_s, *pipeline_s);
            let log = generate(&preset.spec(), seed, *requests)?;
            let mut facts = facts(&log);
            facts.insert("generator".to_owned(), preset.name().to_owned().into());
            let (load, rate) = replay(&log, rule, replayers, None, timed)?;
            Ok((load, rate, facts))
        }
        WorkloadConfig::Generator {
            spec,
            requests,
            persistent_s,
            pipeline_s,
        } => {
            let rule = rule(*persistent_s, *pipeline_s);
            let log = generate(spec, seed, *requests)?;
            let (load, rate) = replay(&log, rule, replayers, None, timed)?;
            Ok((load, rate, facts(&log)))
        }
        WorkloadConfig::Specweb(spec) => {
            let load: Load = vec![Box::new(SpecWeb::new(*spec, seed))];
            Ok((load, None, specweb_facts(spec)))
        }
        WorkloadConfig::OnDemand(spec) => {
            let load: Load = vec![Box::new(OnDemand::new(spec.clone(), seed))];
            Ok((load, None, BTreeMap::new()))
        }
        WorkloadConfig::RemoteFiles(spec) => {
            let load: Load = vec![Box::new(RemoteFiles::new(*spec, seed))];
            Ok((load, None, BTreeMap::new()))
        }
        WorkloadConfig::Fixed(spec) => {
            let load: Load = vec![Box::new(Fixed::new(*spec))];
            Ok((load, None, BTreeMap::new()))
        }
    }
}

fn unread(error: LogError) -> RunError {
    match error {
        LogError::Cancelled { .. } => RunError::Cancelled,
        error => RunError::Workload(error.to_string()),
    }
}

fn rule(persistent_s: u32, pipeline_s: Option<u32>) -> SessionRule {
    SessionRule {
        persistent_s,
        pipeline_s,
    }
}

/// The preset of this name.
fn named(preset: &str) -> Result<Preset, RunError> {
    Preset::from_name(preset).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        RunError::Workload(format!(
            "workload.preset: no generator is called {preset:?}; expected one of {names}"
        ))
    })
}

/// The log without what the simulator's HTTP cannot express, and how much that was.
fn without_giants(log: &Log) -> Result<(Cow<'_, Log>, usize), RunError> {
    if log.files.len() > symbolic::FILES as usize {
        return Err(RunError::Workload(format!(
            "the log has {} distinct URLs; expected at most {}",
            log.files.len(),
            symbolic::FILES
        )));
    }
    let is_giant = |request: &Request| request.bytes >= symbolic::CONTENT_LIMIT;
    let giants = log.requests.iter().filter(|request| is_giant(request));
    let giants = giants.count();
    if giants == 0 {
        return Ok((Cow::Borrowed(log), 0));
    }
    let mut others = log.clone();
    others.requests.retain(|request| !is_giant(request));
    Ok((Cow::Owned(others), giants))
}

fn specweb_facts(spec: &SpecWebSpec) -> Facts {
    let throttle = spec.throttle.map_or("none".to_owned(), |throttle| {
        format!("at most {} kb/s a client", throttle.max_bps / 1000)
    });
    BTreeMap::from([
        (
            "dynamic".to_owned(),
            format!("{} % of requests", spec.dynamic_percent).into(),
        ),
        (
            "load".to_owned(),
            format!("like SPECweb99, for {} clients", spec.clients).into(),
        ),
        ("throttle".to_owned(), throttle.into()),
    ])
}

fn generate(spec: &GeneratorSpec, seed: u64, requests: u32) -> Result<Log, RunError> {
    spec.generate(seed, requests)
        .map_err(|error| RunError::Workload(error.to_string()))
}

/// The log, dealt out, in an order that the seed draws, if one is given, and its requests a second if its times are needed.
fn replay(
    log: &Log,
    rule: SessionRule,
    replayers: u32,
    drawn: Option<u64>,
    timed: bool,
) -> Result<(Load, Option<f64>), RunError> {
    let replay = match timed {
        true => Replay::timed(log, rule),
        false => Replay::new(log, rule),
    };
    let replay = replay.map_err(|error| RunError::Workload(error.to_string()))?;
    let rate = replay.requests_per_s();
    let parts = (0..).zip(replay.split(replayers as usize));
    let parts = parts.map(|(number, part)| match drawn {
        Some(seed) => part.drawn(seed ^ number << 48),
        None => part,
    });
    Ok((parts.map(|part| Box::new(part) as _).collect(), rate))
}

fn facts(log: &Log) -> Facts {
    BTreeMap::from([
        ("requests".to_owned(), log.requests.len().into()),
        (
            "content_bytes".to_owned(),
            Fact::Number(log.content_bytes()),
        ),
    ])
}

/// Lines of the log that were skipped, by reason.
fn skipped(skipped: &Skipped) -> Fact {
    let count = |reason| (snake_case(reason), skipped.count(reason));
    Fact::Counts(SkipReason::ALL.into_iter().map(count).collect())
}

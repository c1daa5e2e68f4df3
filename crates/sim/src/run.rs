//! From an experiment to its results.

use crate::config::{Experiment, WorkloadConfig};
use crate::machine::{Capture, Machine, Observer, RunError};
use crate::results::Results;
use baton_apps::symbolic;
use baton_workload::{
    Fixed, GeneratorSpec, Log, OnDemand, Order, Preset, RemoteFiles, Replay, SessionRule, SpecWeb,
    SpecWebSpec, Workload,
};
use std::collections::BTreeMap;

/// Facts about a workload, in words.
pub type Facts = BTreeMap<String, String>;

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
    experiment.validate()?;
    let (load, facts) = load_workload(experiment)?;
    let machine = Machine::builder(experiment).load(load).captures(captures);
    let mut results = machine.build()?.run(commit, observer)?;
    results.workload = facts;
    Ok(results)
}

/// The workload that an experiment describes, dealt out to its replayers, and facts about it in words.
///
/// # Errors
/// A log that cannot be read or replayed, an unknown generator.
pub fn load_workload(experiment: &Experiment) -> Result<(Load, Facts), RunError> {
    let seed = experiment.run.seed;
    let replayers = experiment.clients.replayers;
    match &experiment.workload {
        WorkloadConfig::Log {
            path,
            persistent_s,
            pipeline_s,
            order,
        } => {
            let mut log = Log::read(path).map_err(|error| RunError::Workload(error.to_string()))?;
            let left_out = leave_out_giants(&mut log)?;
            let mut facts = facts(&log);
            facts.insert("log".to_owned(), path.display().to_string());
            facts.insert("skipped".to_owned(), log.skipped.to_string());
            if left_out > 0 {
                let why = format!("{left_out}, of 2 GiB or more each");
                facts.insert("responses_left_out".to_owned(), why);
            }
            let rule = rule(*persistent_s, *pipeline_s);
            let drawn = (*order == Order::Drawn).then_some(seed);
            Ok((replay(&log, rule, replayers, drawn)?, facts))
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
            facts.insert("generator".to_owned(), preset.name().to_owned());
            Ok((replay(&log, rule, replayers, None)?, facts))
        }
        WorkloadConfig::Generator {
            spec,
            requests,
            persistent_s,
            pipeline_s,
        } => {
            let rule = rule(*persistent_s, *pipeline_s);
            let log = generate(spec, seed, *requests)?;
            Ok((replay(&log, rule, replayers, None)?, facts(&log)))
        }
        WorkloadConfig::Specweb(spec) => {
            let load: Load = vec![Box::new(SpecWeb::new(*spec, seed))];
            Ok((load, specweb_facts(spec)))
        }
        WorkloadConfig::OnDemand(spec) => {
            let load: Load = vec![Box::new(OnDemand::new(spec.clone(), seed))];
            Ok((load, BTreeMap::new()))
        }
        WorkloadConfig::RemoteFiles(spec) => {
            let load: Load = vec![Box::new(RemoteFiles::new(*spec, seed))];
            Ok((load, BTreeMap::new()))
        }
        WorkloadConfig::Fixed(spec) => {
            let load: Load = vec![Box::new(Fixed::new(*spec))];
            Ok((load, BTreeMap::new()))
        }
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

/// Removes what the simulator's HTTP cannot express, and says how much that was.
fn leave_out_giants(log: &mut Log) -> Result<usize, RunError> {
    if log.files.len() > symbolic::FILES as usize {
        return Err(RunError::Workload(format!(
            "the log has {} distinct URLs; expected at most {}",
            log.files.len(),
            symbolic::FILES
        )));
    }
    let before = log.requests.len();
    log.requests
        .retain(|request| request.bytes < symbolic::CONTENT_LIMIT);
    Ok(before - log.requests.len())
}

fn specweb_facts(spec: &SpecWebSpec) -> Facts {
    let throttle = spec.throttle.map_or("none".to_owned(), |throttle| {
        format!("at most {} kb/s a client", throttle.max_bps / 1000)
    });
    BTreeMap::from([
        (
            "dynamic".to_owned(),
            format!("{} % of requests", spec.dynamic_percent),
        ),
        (
            "load".to_owned(),
            format!("like SPECweb99, for {} clients", spec.clients),
        ),
        ("throttle".to_owned(), throttle),
    ])
}

fn generate(spec: &GeneratorSpec, seed: u64, requests: u32) -> Result<Log, RunError> {
    spec.generate(seed, requests)
        .map_err(|error| RunError::Workload(error.to_string()))
}

/// The log, dealt out; in an order that the seed draws, if one is given.
fn replay(
    log: &Log,
    rule: SessionRule,
    replayers: u32,
    drawn: Option<u64>,
) -> Result<Load, RunError> {
    let replay = Replay::new(log, rule).map_err(|error| RunError::Workload(error.to_string()))?;
    let parts = (0..).zip(replay.split(replayers as usize));
    let parts = parts.map(|(number, part)| match drawn {
        Some(seed) => part.drawn(seed ^ number << 48),
        None => part,
    });
    Ok(parts.map(|part| Box::new(part) as _).collect())
}

fn facts(log: &Log) -> Facts {
    BTreeMap::from([
        ("requests".to_owned(), log.requests.len().to_string()),
        ("content_bytes".to_owned(), log.content_bytes().to_string()),
    ])
}

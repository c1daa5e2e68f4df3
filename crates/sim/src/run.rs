//! From an experiment to its results.

use crate::config::{Experiment, WorkloadConfig};
use crate::machine::{Capture, Machine, Observer, RunError};
use crate::results::Results;
use baton_workload::{Fixed, Log, Replay, SessionRule, SpecWeb, Workload};
use std::collections::BTreeMap;

/// A source of connection scripts that can move between threads.
pub type Load = Box<dyn Workload + Send>;

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
    let (load, facts) = load_workload(&experiment.workload, experiment.run.seed)?;
    let mut results = Machine::new(experiment, load, captures)?.run(commit, observer)?;
    results.workload = facts;
    Ok(results)
}

/// The workload that a configuration describes, and facts about it in words.
///
/// # Errors
/// A log that cannot be read or replayed, an unknown generator.
pub fn load_workload(
    config: &WorkloadConfig,
    seed: u64,
) -> Result<(Load, BTreeMap<String, String>), RunError> {
    let rule = |persistent_s, pipeline_s| SessionRule {
        persistent_s,
        pipeline_s,
    };
    match config {
        WorkloadConfig::Log {
            path,
            persistent_s,
            pipeline_s,
        } => {
            let log = Log::read(path).map_err(|error| RunError::Workload(error.to_string()))?;
            let mut facts = facts(&log);
            facts.insert("log".to_owned(), path.display().to_string());
            Ok((replay(&log, rule(*persistent_s, *pipeline_s))?, facts))
        }
        WorkloadConfig::Generated {
            preset,
            requests,
            persistent_s,
        } => {
            let _ = (preset, requests, persistent_s, seed);
            todo!()
        }
        WorkloadConfig::Specweb(spec) => Ok((Box::new(SpecWeb::new(*spec, seed)), BTreeMap::new())),
        WorkloadConfig::Fixed(spec) => Ok((Box::new(Fixed::new(*spec)), BTreeMap::new())),
    }
}

fn replay(log: &Log, rule: SessionRule) -> Result<Load, RunError> {
    let replay = Replay::new(log, rule).map_err(|error| RunError::Workload(error.to_string()))?;
    Ok(Box::new(replay))
}

fn facts(log: &Log) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("requests".to_owned(), log.requests.len().to_string()),
        ("content_bytes".to_owned(), log.content_bytes().to_string()),
    ])
}

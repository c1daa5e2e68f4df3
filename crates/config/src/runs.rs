//! Runs of experiments, by whatever program: what kept one from its results, and under which key a study keeps them.

use crate::{Failure, SOURCES, StudyPlan, complete_text};
use baton_sim::RunError;
use baton_sim::config::{Experiment, Invalid, WorkloadConfig};
use baton_sim::results::Results;
use baton_study::{Inputs, Key, Outcome, Store, Study, StudyRun, identify};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What a store says of the program that did a run.
pub const PROGRAM: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("BATON_SOURCES"),
    " ",
    env!("BATON_COMMIT")
);

/// The results of `run`, which simulates `experiment`, or why there are none. A broken rule of the simulator, which panics, is one of the
/// reasons; `again` is the command that shows it again.
///
/// # Errors
/// There are no results.
pub fn attempt(
    experiment: &Experiment,
    again: &str,
    run: impl FnOnce() -> Result<Results, RunError>,
) -> Result<Results, Failure> {
    let name = &experiment.name;
    let again = format!("run it again with: {again}");
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(results)) => Ok(results),
        Ok(Err(RunError::Cancelled)) => Err(Failure::Interrupted),
        Ok(Err(RunError::Workload(message))) => {
            Err(Failure::BadInput(of_log(&experiment.workload, message)))
        }
        Ok(Err(RunError::Invalid(Invalid {
            path,
            found,
            expected,
        }))) => Err(Failure::BadInput(format!(
            "{name}: {path}: found {found}; expected {expected}"
        ))),
        Ok(Err(error @ RunError::Unreached { .. })) => {
            Err(Failure::BadInput(format!("{name}: {error}")))
        }
        Ok(Err(error @ (RunError::Capture(_) | RunError::Timeline(_)))) => {
            Err(Failure::Failed(format!("{name}: {error}")))
        }
        Ok(Err(error @ RunError::Violation { .. })) => {
            Err(Failure::Failed(format!("{name}: {error}\n{again}")))
        }
        Err(_) => {
            let seed = experiment.run.seed;
            Err(Failure::Failed(format!(
                "{name}: the simulator broke one of its rules (seed {seed}, see above)\n{again}"
            )))
        }
    }
}

/// What is wrong with a workload, with the log's name if it is one.
fn of_log(workload: &WorkloadConfig, message: String) -> String {
    match workload {
        WorkloadConfig::Log { path, .. } if !message.contains(&path.display().to_string()) => {
            format!("{}: {message}", path.display())
        }
        _ => message,
    }
}

/// How a run of a study ended, which `run` simulates. That of one that failed is written beside the results: it would fail again.
///
/// # Errors
/// It cannot be begun, or was interrupted.
pub fn outcome(
    store: &Store,
    key: Key,
    experiment: &Experiment,
    run: impl FnOnce() -> Result<Results, RunError>,
) -> Result<Outcome, Failure> {
    let name = format!("failed/{}.toml", key.short());
    let again = format!("baton run {}", store.root().join(&name).display());
    match attempt(experiment, &again, run) {
        Ok(results) => Ok(Outcome::Measured(Box::new(results))),
        Err(Failure::Failed(why)) => {
            let text = complete_text(experiment)?;
            store.write_beside(&name, text.as_bytes())?;
            Ok(Outcome::Failed(why))
        }
        Err(failure) => Err(failure),
    }
}

/// Whether an experiment's log is what comes on standard input.
pub fn reads_standard_input(experiment: &Experiment) -> bool {
    matches!(&experiment.workload, WorkloadConfig::Log { path, .. } if path == Path::new("-"))
}

impl StudyPlan {
    /// Gives each run its key, for results to be kept in a store.
    ///
    /// # Errors
    /// A log cannot be read.
    pub fn identified(self, store: &Store) -> Result<(Study, Vec<(Key, Experiment)>), Failure> {
        let mut inputs = Inputs::load(store);
        let mut study = Study {
            name: self.name,
            columns: self.columns,
            runs: Vec::with_capacity(self.points.len()),
            command: None,
        };
        let mut runs = Vec::with_capacity(self.points.len());
        for mut point in self.points {
            let seed = point.experiment.run.seed;
            let key = identify(&mut point.experiment, SOURCES, &mut inputs)?;
            study.runs.push(StudyRun {
                key,
                variant: point.variant,
                seed,
                values: point.values,
            });
            runs.push((key, point.experiment));
        }
        inputs.save()?;
        Ok((study, runs))
    }

    /// Refuses standard input as a log: a study that is started again has to find the same.
    ///
    /// # Errors
    /// A run reads it.
    pub fn refuse_standard_input(&self) -> Result<(), Failure> {
        let mut points = self.points.iter();
        match points.any(|point| reads_standard_input(&point.experiment)) {
            true => Err(Failure::BadInput(
                "workload.path: found -, standard input; expected a file, for a study is started again"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }
}

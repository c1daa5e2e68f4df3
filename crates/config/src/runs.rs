//! Runs of experiments, by any program: why a run has no results, and the key under which a study keeps results.

use crate::{Failure, SOURCES, StudyPlan, complete_text};
use baton_sim::RunError;
use baton_sim::config::{Experiment, Invalid, WorkloadConfig};
use baton_sim::results::Results;
use baton_study::{Inputs, Key, Outcome, Store, Study, StudyRun, identify};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Description of the running program in stores.
pub const PROGRAM: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("BATON_SOURCES"),
    " ",
    env!("BATON_COMMIT")
);

/// Runs `run`, which simulates `experiment`, and returns its results or the reason why there are none. One reason is a panic, that is, a
/// violated invariant of the simulator; `again` is the command that reproduces it.
///
/// # Errors
/// Fails if there are no results.
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
                "{name}: an internal check of the simulator failed (seed {seed}, see above)\n{again}"
            )))
        }
    }
}

/// Returns the message about a workload, with the name of the log if the workload is a log.
fn of_log(workload: &WorkloadConfig, message: String) -> String {
    match workload {
        WorkloadConfig::Log { path, .. } if !message.contains(&path.display().to_string()) => {
            format!("{}: {message}", path.display())
        }
        _ => message,
    }
}

/// Returns the outcome of `run`, a run of a study. The experiment of a failed run is written into the store, because it would fail again.
///
/// # Errors
/// Fails if the run cannot be started, or was interrupted.
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

/// Returns whether an experiment reads its log from standard input.
pub fn reads_standard_input(experiment: &Experiment) -> bool {
    matches!(&experiment.workload, WorkloadConfig::Log { path, .. } if path == Path::new("-"))
}

impl StudyPlan {
    /// Computes the key of each run, under which a store keeps the results.
    ///
    /// # Errors
    /// Fails if a log cannot be read.
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

    /// Refuses standard input as a log, because a study that is started again must find the same log.
    ///
    /// # Errors
    /// Fails if a run reads standard input.
    pub fn refuse_standard_input(&self) -> Result<(), Failure> {
        let mut points = self.points.iter();
        match points.any(|point| reads_standard_input(&point.experiment)) {
            true => Err(Failure::BadInput(
                "workload.path: found -, standard input; expected a file, because a study that is started again must find the same log"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }
}

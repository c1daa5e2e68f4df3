//! Does the runs of a study and stores each result immediately.

use super::{Progress, Watch};
use crate::config::{self, COMMIT, PROGRAM};
use crate::failure::Failure;
use crate::logs::{self, LOGS};
use crate::runner::Interrupt;
use baton_sim::config::Experiment;
use baton_sim::results::Results;
use baton_sim::{Fact, Observer, WARNINGS};
use baton_study::{Ended, Key, Outcome, Store, carry_out};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The runs of a study, and the store of their results.
pub struct Sweep<'a> {
    /// The store.
    pub store: &'a Store,
    /// The runs.
    pub runs: &'a [(Key, Experiment)],
    /// Number of simultaneous runs.
    pub threads: usize,
}

impl Sweep<'_> {
    /// Does all runs that no process has done yet, or waits for processes that do them. Returns how many this process did.
    ///
    /// # Errors
    /// Fails if a run cannot be started, if a result cannot be stored, or if the user interrupts. Earlier results stay in the store.
    pub fn carry_out(&self, interrupt: &Interrupt) -> Result<usize, Failure> {
        let progress = Progress::new("runs", self.runs.len(), self.threads);
        let stop = AtomicBool::new(false);
        let warnings = Mutex::new(BTreeSet::new());
        let keys: Vec<Key> = self.runs.iter().map(|(key, _)| *key).collect();
        let run = |number: usize| {
            let watch = Watch {
                job: number,
                progress: &progress,
                interrupt,
                stop: &stop,
            };
            progress.begin(number);
            let outcome = self.run(number, watch);
            progress.end(number);
            match &outcome {
                Ok(Outcome::Measured(results)) => {
                    let mut warnings = warnings
                        .lock()
                        .expect("no thread panics while it holds this");
                    warnings.extend(warnings_of(results));
                }
                Ok(Outcome::Failed(_)) => {}
                Err(_) => stop.store(true, Ordering::Relaxed),
            }
            outcome
        };
        let stopped = || interrupt.requested();
        let done = carry_out(self.store, &keys, PROGRAM, self.threads, &stopped, &run);
        progress.finish();
        let warnings = warnings
            .into_inner()
            .expect("no thread panics while it holds this");
        logs::warn(warnings);
        match done {
            Ok(done) => Ok(done),
            Err(Ended::Failed(Failure::Interrupted) | Ended::Stopped) => Err(Failure::Interrupted),
            Err(Ended::Failed(failure)) => Err(failure),
        }
    }

    fn run(&self, number: usize, mut watch: Watch<'_>) -> Result<Outcome, Failure> {
        let (key, experiment) = &self.runs[number];
        if watch.cancelled() {
            return Err(Failure::Interrupted);
        }
        let run = || baton_sim::run_on(&LOGS, experiment, COMMIT, &[], &mut watch);
        Ok(config::outcome(self.store, *key, experiment, run)?)
    }
}

/// Returns the warnings about the log that the run replayed.
pub fn warnings_of(results: &Results) -> Vec<String> {
    match results.workload.get(WARNINGS) {
        Some(Fact::Words(text)) => text.lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

//! Does the runs of a study and keeps each result as soon as it is there.

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

/// Runs to do, and where their results are kept.
pub struct Sweep<'a> {
    /// The store.
    pub store: &'a Store,
    /// The runs.
    pub runs: &'a [(Key, Experiment)],
    /// At the same time.
    pub threads: usize,
}

impl Sweep<'_> {
    /// Has all runs done that have not been done, here or by other processes. Returns how many were done here.
    ///
    /// # Errors
    /// A run cannot be begun, a result cannot be kept, or the user interrupted. What was kept before stays.
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

/// What whoever believes results must know about their log.
pub fn warnings_of(results: &Results) -> Vec<String> {
    match results.workload.get(WARNINGS) {
        Some(Fact::Words(text)) => text.lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

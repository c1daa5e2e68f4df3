//! Runs configurations at given loads.

use crate::config::{Planned, Request};
use crate::failure::Failure;
use crate::runner::{Interrupt, Job, run_all};
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::Results;
use baton_workload::load::{Arrivals, Rate};
use std::path::Path;

/// Measured responses in each run, unless the user specifies a length.
const RESPONSES: u64 = 100_000;
/// The warm-up has one response for this many measured ones.
const WARM_UP: u64 = 5;

/// A configuration under load.
pub struct Subject {
    /// The experiment; `Self::job` sets its load.
    pub experiment: Experiment,
    /// The command that runs it, without a rate.
    command: String,
}

impl Subject {
    /// Creates a subject whose connections come as a Poisson process, unless the experiment specifies other arrivals.
    pub fn new(run: Planned, request: &Request) -> Self {
        let says_how_long = run.says_how_long();
        let command = request.command_of(&run);
        let mut experiment = run.experiment;
        if !says_how_long {
            experiment.run.measured_responses = Some(RESPONSES);
        }
        let run = &mut experiment.run;
        if let (Some(responses), None) = (run.measured_responses, run.warmup_packets) {
            run.warmup_responses.get_or_insert(responses / WARM_UP);
        }
        experiment.load.arrivals.get_or_insert(Arrivals::Poisson);
        Self {
            experiment,
            command,
        }
    }

    /// Returns the log that the subject replays.
    pub fn log(&self) -> Option<&Path> {
        match &self.experiment.workload {
            WorkloadConfig::Log { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the run with `rate` requests a second or, without a rate, in a closed loop, where clients send each request as soon as they can.
    fn job(&self, rate: Option<f64>) -> Job {
        let mut experiment = self.experiment.clone();
        let mut replay = self.command.clone();
        match rate {
            Some(rate) => {
                experiment.load.rate = Some(Rate::PerSecond(rate));
                let responses = experiment.run.measured_responses.unwrap_or(RESPONSES);
                // The time suffices even if only a tenth of the requests are served.
                let seconds = 10.0 * responses as f64 / rate;
                experiment.run.limit_s = experiment.run.limit_s.max(seconds.ceil() as u64);
                replay.push_str(&format!(" --rate {rate}/s"));
            }
            None => experiment.load = baton_workload::LoadSpec::default(),
        }
        Job::new(experiment, replay)
    }
}

/// The environment of runs.
pub struct Laboratory<'a> {
    /// Number of simultaneous runs.
    pub threads: usize,
    /// The user's request to end the runs.
    pub interrupt: &'a Interrupt,
}

impl Laboratory<'_> {
    /// Runs each subject at its rate, in parallel.
    ///
    /// # Errors
    /// Fails if a run fails, or if the user interrupts.
    pub fn run<'s>(
        &self,
        loads: impl IntoIterator<Item = (&'s Subject, Option<f64>)>,
    ) -> Result<Vec<Results>, Failure> {
        let jobs: Vec<Job> = loads
            .into_iter()
            .map(|(subject, rate)| subject.job(rate))
            .collect();
        run_all(&jobs, self.threads, self.interrupt)
    }
}

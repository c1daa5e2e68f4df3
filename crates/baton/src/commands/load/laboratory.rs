//! Runs at loads.

use crate::config::{Planned, Request};
use crate::failure::Failure;
use crate::runner::{Interrupt, Job, run_all};
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::Results;
use baton_workload::load::{Arrivals, Rate};
use std::path::Path;

/// Responses that are measured in each run, where nobody says how long.
const RESPONSES: u64 = 100_000;
/// One of so many of them is warm-up, before.
const WARM_UP: u64 = 5;

/// A configuration under load.
pub struct Subject {
    /// At the load that the command sets.
    pub experiment: Experiment,
    /// The command that runs it, without a rate.
    command: String,
}

impl Subject {
    /// With connections that come as a Poisson process, unless it says something else.
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

    /// The log that it replays.
    pub fn log(&self) -> Option<&Path> {
        match &self.experiment.workload {
            WorkloadConfig::Log { path, .. } => Some(path),
            _ => None,
        }
    }

    /// At so many requests a second; with none in a closed loop, whose clients ask as soon as they can.
    fn job(&self, rate: Option<f64>) -> Job {
        let mut experiment = self.experiment.clone();
        let mut replay = self.command.clone();
        match rate {
            Some(rate) => {
                experiment.load.rate = Some(Rate::PerSecond(rate));
                let responses = experiment.run.measured_responses.unwrap_or(RESPONSES);
                // Long enough, however few come.
                let seconds = 10.0 * responses as f64 / rate;
                experiment.run.limit_s = experiment.run.limit_s.max(seconds.ceil() as u64);
                replay.push_str(&format!(" --rate {rate}/s"));
            }
            None => experiment.load = baton_workload::LoadSpec::default(),
        }
        Job::new(experiment, replay)
    }
}

/// Where runs are made.
pub struct Laboratory<'a> {
    /// At the same time.
    pub threads: usize,
    /// The user's wish to end it.
    pub interrupt: &'a Interrupt,
}

impl Laboratory<'_> {
    /// Runs each subject at its rate, all at once.
    ///
    /// # Errors
    /// A run that fails, an interrupt.
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

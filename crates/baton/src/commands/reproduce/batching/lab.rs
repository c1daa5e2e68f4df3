//! Runs of the simulated machine with full offload, each with several seeds.

use super::bench::{Bench, Closely, Grid, Measured, Trial};
use super::machine::set_load;
use super::settings::half;
use crate::commands::reproduce::Context;
use crate::config;
use crate::failure::Failure;
use crate::runner::{COMMIT, for_all};
use baton_sim::config::{EstablishedBy, Experiment};
use baton_sim::results::Results;
use baton_sim::{NoObserver, RunError};
use baton_stats::Estimate;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Name of the paper's machine.
const PAPER: &str = "batching";

/// Default number of seeds of each point.
const SEEDS: u32 = 5;

/// The simulated machine, with the number of its runs and threads.
pub(super) struct Lab<'a> {
    context: &'a Context<'a>,
    /// The machine that the user asked for, by default the paper's.
    pub machine: Experiment,
    /// Name of the machine.
    pub machine_name: String,
    /// Number of seeds of each point.
    pub seeds: u32,
}

/// A configuration to measure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// Name in messages.
    pub name: String,
    /// The machine and the load. The seed is replaced.
    pub experiment: Experiment,
}

impl<'a> Lab<'a> {
    /// Creates a lab with the machine that the user asks for.
    ///
    /// # Errors
    /// Fails if there is no such machine, or if it is not valid.
    pub fn new(context: &'a Context<'a>) -> Result<Self, Failure> {
        let name = context.batching.profile.as_deref().unwrap_or(PAPER);
        let mut machine = config::profile(name)?;
        if machine.offload.established_by == EstablishedBy::Host {
            return Err(Failure::BadInput(format!(
                "--profile {name}: in this profile the host establishes connections; expected one with all of TCP on the adapter \
                 (offload), such as batching or offload-pcie"
            )));
        }
        if let Some(responses) = context.batching.responses {
            machine.run.measured_responses = Some(responses.into());
        }
        Ok(Self {
            context,
            machine,
            machine_name: name.to_owned(),
            seeds: context.batching.seeds.unwrap_or(SEEDS),
        })
    }

    /// Returns the user's options.
    pub fn context(&self) -> &Context<'a> {
        self.context
    }

    /// Measures all points, each with all seeds.
    ///
    /// # Errors
    /// Fails if a point is impossible, if a run fails, or if the user interrupts.
    pub fn measure(&self, points: &[Point]) -> Result<Vec<Measured>, Failure> {
        let seeds = u64::from(self.seeds);
        let first = self.context.seed;
        let tasks: Vec<Point> = points
            .iter()
            .flat_map(|point| (0..seeds).map(move |n| point.with_seed(first.wrapping_add(n))))
            .collect();
        let (threads, interrupt) = (self.context.threads, self.context.interrupt);
        let results = for_all(&tasks, "runs", threads, interrupt, run_one)?;
        let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let by_point = results.chunks(seeds as usize);
        Ok(by_point.map(Measured::of).collect())
    }
}

impl Point {
    fn with_seed(&self, seed: u64) -> Self {
        let mut point = self.clone();
        point.experiment.run.seed = seed;
        point.experiment.name.clone_from(&self.name);
        point
    }
}

impl Bench for Lab<'_> {
    fn measure_all(&self, trials: &[Trial]) -> Result<Vec<Measured>, Failure> {
        let point = |trial: &Trial| {
            let mut experiment = self.machine.clone();
            trial.settings.apply(&mut experiment);
            set_load(&mut experiment, trial.file_bytes, trial.connections);
            Point {
                name: trial.name.clone(),
                experiment,
            }
        };
        self.measure(&trials.iter().map(point).collect::<Vec<_>>())
    }

    /// Returns the paper's ranges: levels in powers of two up to the ring's depth; timers of 1, 5 and 10 ms and half the baseline's
    /// response time.
    fn grid(&self, baseline: &Measured) -> Grid {
        let mut timers_us = vec![1_000, 5_000, 10_000, half(baseline.response_us.mean)];
        timers_us.sort_unstable();
        timers_us.dedup();
        Grid {
            levels: (1..8).map(|power| 1 << power).collect(),
            timers_us,
        }
    }

    fn values_are(&self) -> &'static str {
        "simulated"
    }

    fn spread_is(&self) -> &'static str {
        match self.seeds {
            1 => "one run each",
            _ => "with 95 % intervals over the runs",
        }
    }

    fn note(&self) -> String {
        format!(
            "Machine {}; {} seeds, beginning with {}; {} replies measured in each run.\n",
            self.machine_name,
            self.seeds,
            self.context.seed,
            self.machine.run.measured_responses.unwrap_or_default(),
        )
    }
}

impl Measured {
    fn of(runs: &[Results]) -> Self {
        let over = |value: fn(&Results) -> f64| {
            let values: Vec<f64> = runs.iter().map(value).collect();
            Estimate::of_independent(&values).unwrap_or_default()
        };
        let first = &runs[0];
        let crossed = first.offload.clone();
        Self {
            response_us: over(|run| 1e3 * run.clients.first_byte_ms.mean.unwrap_or(f64::NAN)),
            transfer_us: over(|run| 1e3 * run.clients.transfer_ms.mean.unwrap_or(f64::NAN)),
            crossings: over(Results::crossings_per_response),
            rate: over(|run| run.clients.request_rate),
            is_doubtful: runs.iter().any(|run| run.long_run.is_doubtful()),
            first: Closely {
                responses: first.clients.responses,
                host_transfers: crossed.host_transfers,
                adapter_transfers: crossed.adapter_transfers,
                busy_percent: Some(
                    [first.host.idle_percent, first.nic.idle_percent].map(|idle| 100.0 - idle),
                ),
            },
        }
    }
}

/// Runs a point with its own seed.
///
/// # Errors
/// Fails if the point is impossible, or if the run fails.
pub(super) fn run_one(point: &Point) -> Result<Results, Failure> {
    let Point { name, experiment } = point;
    let seed = experiment.run.seed;
    // A violated invariant of the simulator panics; the message names the run.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        baton_sim::run(experiment, COMMIT, &[], &mut NoObserver)
    }));
    match outcome {
        Ok(Ok(results)) if results.clients.responses > 0 => Ok(results),
        Ok(Ok(results)) => Err(Failure::Failed(format!(
            "{name}: no reply within {} s of simulated time (seed {seed})",
            results.experiment.run.limit_s
        ))),
        Ok(Err(RunError::Invalid(invalid))) => Err(Failure::BadInput(format!("{name}: {invalid}"))),
        Ok(Err(error)) => Err(Failure::Failed(format!("{name}: {error}"))),
        Err(_) => Err(Failure::Failed(format!(
            "{name}: an internal check of the simulator failed (seed {seed}, see above)"
        ))),
    }
}

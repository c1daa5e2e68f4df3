//! Runs experiments on several threads. Results are in the order of the experiments, whichever finishes first.

mod estimate;
mod interrupt;
mod progress;
mod sweep;
mod tasks;

pub use baton_config::COMMIT;
pub use interrupt::Interrupt;
pub use progress::{Progress, Spinner};
pub use sweep::Sweep;
pub use tasks::for_all;

use crate::config::{self, Planned, Request, reads_standard_input};
use crate::failure::Failure;
use crate::logs::{self, LOGS};
use baton_sim::config::Experiment;
use baton_sim::results::Results;
use baton_sim::{Capture, Observer, Timeline};
use baton_timeline::Summary;
use baton_workload::load::Rate;
use baton_workload::log::standard_input;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// One experiment to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The experiment.
    pub experiment: Experiment,
    /// Captures to make of the run.
    pub captures: Vec<Capture>,
    /// The timeline to make of the run, if any.
    pub timeline: Option<Timeline>,
    /// The command that runs the experiment again; shown if the simulation itself fails.
    pub replay: String,
}

impl Job {
    /// Creates a run without captures.
    pub fn new(experiment: Experiment, replay: String) -> Self {
        Self {
            experiment,
            captures: Vec::new(),
            timeline: None,
            replay,
        }
    }

    /// Returns all requested runs, without captures.
    ///
    /// # Errors
    /// Fails if the request cannot be used.
    pub fn all_of(request: &Request) -> Result<Vec<Self>, Failure> {
        let job = |run: Planned| {
            let replay = request.command_of(&run);
            Self::new(run.experiment, replay)
        };
        let runs = config::plan(request)?.runs.into_iter();
        Ok(runs.map(job).collect())
    }
}

/// Runs all jobs on at most `threads` threads.
///
/// # Errors
/// Returns the first failure in the order of the jobs, after which the other jobs are ended, or fails if the user interrupts.
pub fn run_all(
    jobs: &[Job],
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Results>, Failure> {
    let results = run_each(jobs, threads, interrupt)?.into_iter();
    results.collect::<Option<_>>().ok_or(Failure::Interrupted)
}

/// Runs all jobs on at most `threads` threads. Jobs that are not done when the user interrupts have no results.
///
/// # Errors
/// Returns the first failure in the order of the jobs, after which the other jobs are ended.
pub fn run_each(
    jobs: &[Job],
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Option<Results>>, Failure> {
    if (jobs.iter()).any(|job| reads_standard_input(&job.experiment)) {
        // Standard input is read before the runs, which would not notice an interrupt while they wait for it.
        let read = interrupt.during(standard_input)?;
        read.map_err(|error| Failure::BadInput(format!("-: cannot read: {error}")))?;
    }
    let threads = threads.clamp(1, jobs.len().max(1));
    let progress = Progress::new("runs", jobs.len(), threads);
    let outcomes: Vec<Mutex<Option<Result<Results, Failure>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            let watch = Watch {
                job: index,
                progress: &progress,
                interrupt,
                stop: &stop,
            };
            progress.begin(index);
            let outcome = run_one(job, watch);
            progress.end(index);
            match &outcome {
                Ok(results) => progress.row(row(results)),
                Err(_) => stop.store(true, Ordering::Relaxed),
            }
            *outcomes[index]
                .lock()
                .expect("no thread panics while it holds this") = Some(outcome);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    progress.finish();
    let results = collect(outcomes)?;
    logs::warn(results.iter().flatten().flat_map(sweep::warnings_of));
    Ok(results)
}

/// Describes a finished run in a line, which is shown while other runs continue.
fn row(results: &Results) -> String {
    let name = &results.experiment.name;
    let rate = baton_report::estimated(results.request_rate());
    let at = match results.experiment.load.rate {
        Some(Rate::PerSecond(offered)) => {
            format!(" at {}/s", baton_report::significant(offered))
        }
        _ => String::new(),
    };
    format!("{name}{at}: {rate} requests/s")
}

/// Returns the results of all finished jobs, or the first failure that is not an interrupt.
fn collect(
    outcomes: Vec<Mutex<Option<Result<Results, Failure>>>>,
) -> Result<Vec<Option<Results>>, Failure> {
    let outcomes = outcomes.into_iter().map(|outcome| {
        let outcome = outcome.into_inner();
        match outcome.expect("no thread panics while it holds this") {
            Some(Ok(results)) => Ok(Some(results)),
            Some(Err(Failure::Interrupted)) | None => Ok(None),
            Some(Err(failure)) => Err(failure),
        }
    });
    outcomes.collect()
}

fn run_one(job: &Job, mut watch: Watch<'_>) -> Result<Results, Failure> {
    let Job {
        experiment,
        captures,
        timeline,
        replay,
    } = job;
    if watch.cancelled() {
        return Err(Failure::Interrupted);
    }
    let run = || {
        baton_sim::run_with(&LOGS, experiment, COMMIT, &mut watch, |machine| {
            machine.captures(captures).timeline(timeline.as_ref())
        })
    };
    Ok(config::attempt(experiment, replay, run)?)
}

/// Observes one job.
struct Watch<'a> {
    job: usize,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
    stop: &'a AtomicBool,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, share: f64) {
        self.progress.advance(self.job, share);
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.interrupt.requested()
    }

    fn timeline(&mut self, summary: &Summary) {
        self.progress.note(format!("timeline: {summary}"));
    }
}

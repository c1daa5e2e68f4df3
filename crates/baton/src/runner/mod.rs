//! Runs experiments on several threads. Results are in the order of the experiments, whichever finishes first.

mod estimate;
mod interrupt;
mod progress;
mod sweep;
mod tasks;

pub use baton_config::COMMIT;
pub use interrupt::Interrupt;
pub use progress::Spinner;
pub use sweep::Sweep;
pub use tasks::for_all;

use crate::config::{self, Planned, Request, reads_standard_input};
use crate::failure::Failure;
use crate::logs::{self, LOGS};
use baton_sim::config::Experiment;
use baton_sim::results::Results;
use baton_sim::{Capture, Observer, Timeline};
use baton_timeline::Summary;
use baton_workload::log::standard_input;
use progress::Progress;
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
    if (jobs.iter()).any(|job| reads_standard_input(&job.experiment)) {
        // Runs find standard input read: while they wait for it, they do not notice an interrupt.
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
            if outcome.is_err() {
                stop.store(true, Ordering::Relaxed);
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
    logs::warn(results.iter().flat_map(sweep::warnings_of));
    Ok(results)
}

/// Returns all results, or the first failure that is not only a consequence of another.
fn collect(
    outcomes: Vec<Mutex<Option<Result<Results, Failure>>>>,
) -> Result<Vec<Results>, Failure> {
    let mut results = Vec::with_capacity(outcomes.len());
    let mut interrupted = false;
    for outcome in outcomes {
        match outcome
            .into_inner()
            .expect("no thread panics while it holds this")
        {
            Some(Ok(result)) => results.push(result),
            Some(Err(Failure::Interrupted)) | None => interrupted = true,
            Some(Err(failure)) => return Err(failure),
        }
    }
    if interrupted {
        Err(Failure::Interrupted)
    } else {
        Ok(results)
    }
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

//! A progress bar on stderr, only if that is a terminal, only for what takes long enough to want one.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Nobody misses a bar before this.
const DELAY: Duration = Duration::from_secs(1);

/// What of a job is counted, where it says only what share of it is done.
const SHARES: u64 = 1000;

/// What all jobs together have done.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    done: Vec<AtomicU64>,
    shown: Once,
}

impl Progress {
    /// For so many jobs of `total` things together; `unit` is what the things are.
    pub fn of(unit: &'static str, jobs: usize, total: u64) -> Self {
        Self::new(&format!("{{human_len}} {unit}"), jobs, total)
    }

    /// For so many jobs that take about as long each.
    pub fn of_shares(jobs: usize) -> Self {
        let runs = if jobs == 1 { "run" } else { "runs" };
        Self::new(&format!("{jobs} {runs}"), jobs, SHARES * jobs as u64)
    }

    fn new(all: &str, jobs: usize, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(&format!(
            "{{bar:40}} {{percent:>3}} % of {all}, {{eta}} left"
        ));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            bar,
            done: (0..jobs).map(|_| AtomicU64::new(0)).collect(),
            shown: Once::new(),
        }
    }

    /// `job` has done this many.
    pub fn set(&self, job: usize, done: u64) {
        self.done[job].store(done, Ordering::Relaxed);
        if self.bar.elapsed() > DELAY {
            // Draws nothing if stderr is no terminal.
            self.shown
                .call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
        self.bar.set_position(
            self.done
                .iter()
                .map(|done| done.load(Ordering::Relaxed))
                .sum(),
        );
    }

    /// `job` has done this share of its work.
    pub fn set_share(&self, job: usize, share: f64) {
        self.set(job, (share.clamp(0.0, 1.0) * SHARES as f64) as u64);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A turning wheel on stderr beside what is being done, until dropped; only if stderr is a terminal.
#[derive(Debug)]
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Starts to turn.
    pub fn new(doing: &'static str) -> Self {
        let spinner = ProgressBar::new_spinner().with_message(doing);
        spinner.enable_steady_tick(Duration::from_millis(100));
        Self(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

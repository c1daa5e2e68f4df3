//! Shows progress on stderr for long work: a bar on a terminal, otherwise a line from time to time.

use super::estimate::Estimate;
use crate::output::{is_quiet, note, tell};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without a bar at the beginning.
const BAR_AFTER: Duration = Duration::from_secs(1);

/// Time between two lines, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Maximum number of finished jobs that are listed below the progress bar.
const ROWS: usize = 16;

/// Steps of the bar.
const STEPS: f64 = 1000.0;

/// Progress of all jobs together.
#[derive(Debug)]
pub struct Progress {
    unit: &'static str,
    jobs: usize,
    start: Instant,
    /// The bar, on a terminal.
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    estimate: Estimate,
    /// Time of the next update of the bar, or of the next line.
    due: Duration,
    /// Lines about finished jobs, shown below the bar or, without a terminal, not printed yet.
    rows: Vec<String>,
    /// Notes to print after the bar has been removed.
    notes: Vec<String>,
}

impl Progress {
    /// Creates the progress of `jobs` jobs on `threads` threads; `unit` is the name of the jobs.
    pub fn new(unit: &'static str, jobs: usize, threads: usize) -> Self {
        let on_terminal = stderr().is_terminal() && !is_quiet();
        let bar = on_terminal.then(|| {
            let target = ProgressDrawTarget::hidden();
            let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
            let style = ProgressStyle::with_template("{bar:30} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let due = if bar.is_some() { BAR_AFTER } else { LINE_EVERY };
        let state = State {
            estimate: Estimate::new(jobs, threads),
            due,
            rows: Vec::new(),
            notes: Vec::new(),
        };
        Self {
            unit,
            jobs,
            start: Instant::now(),
            bar,
            state: Mutex::new(state),
        }
    }

    /// Records that a job begins.
    pub fn begin(&self, job: usize) {
        let now = self.now();
        self.state().estimate.begin(job, now);
    }

    /// Records that `job` has done this share of its work.
    pub fn advance(&self, job: usize, share: f64) {
        let now = self.now();
        let mut state = self.state();
        state.estimate.advance(job, share, now);
        self.show(&mut state);
    }

    /// Records that a job is done.
    pub fn end(&self, job: usize) {
        let now = self.now();
        let mut state = self.state();
        state.estimate.end(job, now);
        self.show(&mut state);
    }

    /// Adds a line about a finished job, unless there is only one job.
    pub fn row(&self, text: String) {
        if self.jobs > 1 {
            let mut state = self.state();
            state.rows.push(text);
            self.show(&mut state);
        }
    }

    /// Adds a note that is printed at the end.
    pub fn note(&self, text: String) {
        self.state().notes.push(text);
    }

    /// Removes the bar and prints the notes.
    pub fn finish(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
        self.state().notes.drain(..).for_each(|text| note(&text));
    }

    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, state: &mut State) {
        let elapsed = self.start.elapsed();
        if self.bar.is_none() && elapsed > BAR_AFTER && !is_quiet() {
            (state.rows.drain(..)).for_each(|row| tell(&format!("done: {row}\n")));
        }
        if elapsed < state.due || is_quiet() {
            return;
        }
        let text = self.text(&state.estimate, elapsed.as_secs_f64());
        let Some(bar) = &self.bar else {
            tell(&format!("progress: {text}\n"));
            state.due = elapsed + LINE_EVERY;
            return;
        };
        if state.due == BAR_AFTER {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        state.due = elapsed + Duration::from_millis(100);
        let newest = state.rows.len().saturating_sub(ROWS);
        let rows = state.rows[newest..].iter().map(|row| format!("\n{row}"));
        bar.set_message(text + &rows.collect::<String>());
        bar.set_position((state.estimate.share() * STEPS) as u64);
    }

    /// Formats the progress: `45 %, 5 of 12 runs done, 20 s left`.
    fn text(&self, estimate: &Estimate, now: f64) -> String {
        let percent = estimate.share() * 100.0;
        let (done, jobs, unit) = (estimate.done(), self.jobs, self.unit);
        let done = match jobs {
            1 => String::new(),
            _ => format!(", {done} of {jobs} {unit} done"),
        };
        let left = estimate.left(now);
        let left = left.map_or(String::new(), |left| format!(", {} left", duration(left)));
        format!("{percent:.0} %{done}{left}")
    }
}

/// Formats a number of seconds for people.
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A spinner on stderr next to the name of the current work, until it is dropped; shown only if stderr is a terminal.
#[derive(Debug)]
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Starts the spinner.
    pub fn new(doing: &'static str) -> Self {
        if is_quiet() {
            return Self(ProgressBar::hidden());
        }
        let spinner = ProgressBar::new_spinner().with_message(doing);
        spinner.enable_steady_tick(Duration::from_millis(100));
        Self(spinner)
    }

    /// Sets the name of the current work.
    #[cfg(live)]
    pub fn say(&self, doing: String) {
        self.0.set_message(doing);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_done_jobs_and_remaining_time() {
        let progress = Progress::new("runs", 4, 2);
        let mut estimate = Estimate::new(4, 2);
        estimate.begin(0, 0.0);
        assert_eq!(progress.text(&estimate, 1.0), "0 %, 0 of 4 runs done");
        estimate.end(0, 100.0);
        assert_eq!(
            progress.text(&estimate, 100.0),
            "25 %, 1 of 4 runs done, 3 min 20 s left"
        );
        assert_eq!(duration(7384.0), "2 h 3 min");
    }
}

//! Measures the paper's tables: httperf requests a file from a web server whose TCP is on an adapter, which is another process.

mod httperf;
mod process;
mod stage;

use super::bench::{Bench, Closely, Grid, Measured, Trial};
use super::settings::{FILES, half};
use crate::commands::reproduce::Context;
use crate::failure::Failure;
use crate::runner::{Interrupt, Progress};
use baton_live::BusRow;
use baton_stats::Estimate;
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

/// Properties of the link, each way: the paper's LAN of 100 Mb/s, and a delay that makes the baseline's response time similar to that of
/// the simulated machine. httperf reports times to 0.1 ms, which suffices only if they are some milliseconds.
const FAULT: &str = "delay=1ms,rate=100mbit,queue=10000";
/// Default number of runs of each setting.
const RUNS: u32 = 3;
/// Default number of replies in a run, by file.
const REPLIES: [u32; FILES.len()] = [100, 40, 20];
/// Maximum number of replies before the measured ones; never more than the measured ones.
const WARMUP_REPLIES: u32 = 10;
/// Levels of the search, and divisors of the baseline's response time for its timers. The search is small because each trial takes seconds.
const LEVELS: [u32; 3] = [2, 4, 16];
const TIMER_PARTS: [u32; 2] = [8, 2];

/// Measurements on this machine.
pub(super) struct LiveBench<'a> {
    interrupt: &'a Interrupt,
    runs: u32,
    replies: Option<u32>,
    seed: u64,
    /// Folder with the files to serve.
    site: TempDir,
}

/// Measurements of httperf in one run, and the bus before and after the run.
struct Run {
    replies: u32,
    response_us: f64,
    transfer_us: f64,
    rate: f64,
    before: BusRow,
    after: BusRow,
}

impl<'a> LiveBench<'a> {
    /// Creates a bench with files to serve.
    ///
    /// # Errors
    /// Fails if something necessary is missing.
    pub fn new(context: &'a Context<'a>) -> Result<Self, Failure> {
        httperf::is_there()?;
        let failed = |error| Failure::Failed(format!("cannot write the files to serve: {error}"));
        let site = tempfile::tempdir().map_err(failed)?;
        for (bytes, _) in FILES {
            let content = vec![b'x'; bytes as usize];
            fs::write(site.path().join(bytes.to_string()), content).map_err(failed)?;
        }
        Ok(Self {
            interrupt: context.interrupt,
            runs: context.batching.seeds.unwrap_or(RUNS),
            replies: context.batching.responses,
            seed: context.seed,
            site,
        })
    }

    fn replies(&self, file_bytes: u32) -> u32 {
        let usual = FILES.iter().zip(REPLIES);
        let usual = usual
            .into_iter()
            .find(|((bytes, _), _)| *bytes == file_bytes);
        self.replies
            .or(usual.map(|(_, replies)| replies))
            .unwrap_or(REPLIES[0])
    }

    fn measure(&self, trial: &Trial) -> Result<Measured, Failure> {
        let mut stage =
            stage::Stage::set(self.site.path(), trial.settings, self.seed, self.interrupt)?;
        let ask = |stage: &mut stage::Stage, replies: u32| {
            // Each connection gets the same number of requests.
            let calls = replies.div_ceil(trial.connections);
            let load = httperf::Load {
                server: stage::ENGINE,
                path: trial.file_bytes.to_string(),
                connections: trial.connections,
                calls,
            };
            let seen = load.run(stage.namespace(), self.interrupt);
            seen.map_err(|failure| stage.blame(failure))
        };
        let replies = self.replies(trial.file_bytes);
        ask(&mut stage, replies.min(WARMUP_REPLIES))?;
        let mut runs = Vec::new();
        for _ in 0..self.runs {
            let before = stage.quiet()?;
            let seen = ask(&mut stage, replies)?;
            runs.push(Run {
                replies: seen.replies,
                response_us: seen.response_us,
                transfer_us: seen.transfer_us,
                rate: f64::from(seen.replies) / seen.duration_s,
                before,
                after: stage.quiet()?,
            });
        }
        stage.end()?;
        Ok(Measured::of_least_disturbed(&runs))
    }
}

impl Bench for LiveBench<'_> {
    fn measure_all(&self, trials: &[Trial]) -> Result<Vec<Measured>, Failure> {
        // One trial at a time, because simultaneous trials would disturb each other.
        let progress = Progress::new("settings", trials.len(), 1);
        let measure = |(number, trial): (usize, &Trial)| {
            progress.begin(number);
            let measured = self.measure(trial).map_err(|failure| match failure {
                Failure::Failed(why) => Failure::Failed(format!("{}: {why}", trial.name)),
                other => other,
            });
            progress.end(number);
            measured
        };
        let all = trials.iter().enumerate().map(measure).collect();
        progress.finish();
        all
    }

    fn grid(&self, baseline: &Measured) -> Grid {
        let part = |part: u32| half(baseline.response_us.mean * 2.0 / f64::from(part));
        Grid {
            levels: LEVELS.into(),
            timers_us: TIMER_PARTS.map(part).into(),
        }
    }

    fn values_are(&self) -> &'static str {
        "measured"
    }

    fn spread_is(&self) -> &'static str {
        "with half the range over the runs"
    }

    fn note(&self) -> String {
        let replies = FILES.map(|(bytes, size)| format!("{} of {size}", self.replies(bytes)));
        format!(
            "httperf through a TAP device with {FAULT} in each direction, to `baton live serve` on `baton live adapter`. Of {} runs with {}\n\
             replies, the one with the shortest response time is shown. httperf reports times to 0.1 ms.\n",
            self.runs,
            replies.join(", "),
        )
    }
}

impl Measured {
    /// Returns the results of the least disturbed run. Other work on the machine makes response times longer, never shorter, so that this
    /// is the run with the shortest.
    fn of_least_disturbed(runs: &[Run]) -> Self {
        let shortest = |a: &&Run, b: &&Run| a.response_us.total_cmp(&b.response_us);
        let best = runs.iter().min_by(shortest).expect("there is a run");
        let over = |value: fn(&Run) -> f64| {
            let all = runs.iter().map(value);
            let range = all.clone().fold(f64::MIN, f64::max) - all.fold(f64::MAX, f64::min);
            Estimate {
                mean: value(best),
                half_width: Some(range / 2.0),
            }
        };
        Self {
            response_us: over(|run| run.response_us),
            transfer_us: over(|run| run.transfer_us),
            crossings: over(Run::crossings),
            rate: over(|run| run.rate),
            is_doubtful: false,
            first: Closely {
                responses: best.replies.into(),
                host_transfers: (best.after.requests.per_transfer)
                    .since(&best.before.requests.per_transfer),
                adapter_transfers: (best.after.responses.per_transfer)
                    .since(&best.before.responses.per_transfer),
                busy_percent: None,
            },
        }
    }
}

impl Run {
    /// Returns the DMA operations for each reply.
    fn crossings(&self) -> f64 {
        let crossings = self.after.crossings.crossings() - self.before.crossings.crossings();
        crossings as f64 / f64::from(self.replies)
    }
}

/// Maximum pause between two checks of a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

//! Compares batching that needs no tuning with all fixed settings.

mod baselines;
mod report;

use crate::commands::reproduce::batching::bench::Measured;
use crate::commands::reproduce::batching::lab::{Lab, Point};
use crate::commands::reproduce::batching::machine::{offload, set_load, set_rate};
use crate::commands::reproduce::batching::settings::{FILES, Settings};
use crate::commands::reproduce::{Outcome, of_code};
use crate::failure::Failure;
use baselines::{combined, every_setting};
use baton_bus::BatchingPolicy;
use baton_sim::config::Experiment;

/// Connections in closed loops.
const CONNECTIONS: [u32; 5] = [1, 5, 20, 50, 100];
/// A large number of connections, with the smallest file only: with larger files, they would only wait for the wire.
const MANY: u32 = 1_000;
/// Default number of measured replies of each file, and minimum for each connection: with fewer, data that was fetched before the
/// measurement would count too much. A large file gives as much information as several small ones.
const REPLIES: [u64; FILES.len()] = [1_000, 200, 50];
const REPLIES_PER_CONNECTION: u64 = 5;
/// Fixed rates of the smallest file, per cent of the baseline's rate with the most connections.
const RATES_PERCENT: [u32; 3] = [1, 50, 90];
/// Replies for each connection, so that every connection takes part in the measurement.
const LEAST_REPLIES_PER_CONNECTION: u64 = 3;
/// Ratio below which response times are equal.
const EQUAL: f64 = 1.01;

/// A load on the machine.
struct Workload {
    name: String,
    experiment: Experiment,
    /// Whether this is a closed loop of the smallest file, whose connections are a point of the figure.
    drawn: bool,
}

/// A load, measured in all ways.
struct Compared {
    workload: Workload,
    baseline: Measured,
    adaptive: Measured,
    /// Measurements of the settings of [`every_setting`] in order, the same for each load.
    fixed: Vec<(Settings, Measured)>,
    /// Combinations of good settings of both sides.
    combined: Vec<(Settings, Measured)>,
}

pub(super) fn run(lab: &Lab<'_>) -> Result<Outcome, Failure> {
    let mut compared = Vec::new();
    for workload in closed_loops(lab) {
        compared.push(Compared::measure(lab, workload)?);
    }
    let most = compared
        .iter()
        .rfind(|compared| compared.workload.drawn)
        .expect("there are closed loops of the smallest file");
    let capacity = most.baseline.rate.mean;
    for workload in fixed_rates(lab, capacity) {
        compared.push(Compared::measure(lab, workload)?);
    }
    Ok(Outcome {
        rows: of_code(report::rows(&compared)),
        text: report::text(lab, &compared),
        figure: Some(report::figure(&compared).into()),
    })
}

/// Returns all files with all numbers of connections.
fn closed_loops(lab: &Lab<'_>) -> Vec<Workload> {
    let mut all = Vec::new();
    for (index, (bytes, size)) in FILES.into_iter().enumerate() {
        let many = (index == 0).then_some(MANY);
        for connections in CONNECTIONS.into_iter().chain(many) {
            let mut experiment = machine(lab, connections, REPLIES[index]);
            set_load(&mut experiment, bytes, connections);
            all.push(Workload {
                name: format!("{size}, {connections} conn."),
                experiment,
                drawn: index == 0,
            });
        }
    }
    all
}

/// Returns the smallest file at shares of the machine's capacity.
fn fixed_rates(lab: &Lab<'_>, capacity: f64) -> Vec<Workload> {
    let at = |share: u32| {
        let mut experiment = machine(lab, MANY, REPLIES[0]);
        let rate = (capacity * f64::from(share) / 100.0).round().max(1.0) as u32;
        set_rate(&mut experiment, rate);
        Workload {
            name: format!("{}, {rate}/s ({share} %)", FILES[0].1),
            experiment,
            drawn: false,
        }
    };
    RATES_PERCENT.map(at).into()
}

/// Returns the machine with this many connections. All its timers are exact, even if those of the real machine are not: otherwise fixed
/// batching would lose by its timers alone.
fn machine(lab: &Lab<'_>, connections: u32, replies: u64) -> Experiment {
    let mut experiment = with_connections(&lab.machine, connections);
    let least = REPLIES_PER_CONNECTION * u64::from(connections);
    let replies = match lab.context().batching.responses {
        Some(replies) => replies.into(),
        None => replies.max(least),
    };
    experiment.run.measured_responses = Some(replies);
    // The policy learns during the warm-up.
    experiment.run.warmup_responses = experiment.run.warmup_responses.max(Some(replies / 3));
    let offload = offload(&mut experiment);
    offload.host.interface.batching.tick_us = 1;
    offload.adapter.interface.batching.tick_us = 1;
    experiment
}

impl Compared {
    fn measure(lab: &Lab<'_>, mut workload: Workload) -> Result<Self, Failure> {
        let adapter = &offload(&mut workload.experiment).adapter;
        let timer_us = adapter.interface.batching.timer_us;
        let all = every_setting(timer_us);
        let mut points = vec![workload.fixed(Settings::BASELINE), workload.adaptive()];
        points.extend(all.iter().map(|&settings| workload.fixed(settings)));
        let mut measured = lab.measure(&points)?.into_iter();
        let mut next = || measured.next().expect("all points are measured");
        let (baseline, adaptive) = (next(), next());
        let mut compared = Self {
            fixed: all.into_iter().zip(measured).collect(),
            workload,
            baseline,
            adaptive,
            combined: Vec::new(),
        };
        let pairs = combined(&compared.fixed, |measured| compared.is_affordable(measured));
        let points: Vec<Point> = pairs
            .iter()
            .map(|&settings| compared.workload.fixed(settings))
            .collect();
        let measured = lab.measure(&points)?;
        compared.combined = pairs.into_iter().zip(measured).collect();
        Ok(compared)
    }

    /// Returns response time and crossings, relative to the baseline's.
    fn ratios(&self, measured: &Measured) -> (f64, f64) {
        (
            measured.response_us.mean / self.baseline.response_us.mean,
            measured.crossings.mean / self.baseline.crossings.mean,
        )
    }

    /// Returns whether the response time is no longer than with adaptive batching.
    fn is_affordable(&self, measured: &Measured) -> bool {
        measured.response_us.mean <= EQUAL * self.adaptive.response_us.mean
    }

    /// Returns the fixed setting with the fewest crossings among those with a response time no longer than with adaptive batching.
    fn best_fixed(&self) -> (Settings, &Measured) {
        let tried = self.fixed.iter().chain(&self.combined);
        std::iter::once((Settings::BASELINE, &self.baseline))
            .chain(tried.map(|(settings, measured)| (*settings, measured)))
            .filter(|(_, measured)| self.is_affordable(measured))
            .min_by(|a, b| a.1.crossings.mean.total_cmp(&b.1.crossings.mean))
            .unwrap_or((Settings::BASELINE, &self.baseline))
    }
}

impl Workload {
    fn fixed(&self, settings: Settings) -> Point {
        let mut experiment = self.experiment.clone();
        settings.apply(&mut experiment);
        Point {
            name: format!("{}, {}", self.name, settings.describe()),
            experiment,
        }
    }

    fn adaptive(&self) -> Point {
        let mut experiment = self.experiment.clone();
        let offload = offload(&mut experiment);
        offload.host.interface.batching.policy = BatchingPolicy::Adaptive;
        offload.adapter.interface.batching.policy = BatchingPolicy::Adaptive;
        Point {
            name: format!("{}, adaptive", self.name),
            experiment,
        }
    }
}

/// Returns the machine with this many connections, with sufficient sizes and a sufficient length of the run.
fn with_connections(machine: &Experiment, connections: u32) -> Experiment {
    let mut experiment = machine.clone();
    experiment.clients.connections = connections;
    let backlog = &mut experiment.host.kernel.backlog;
    *backlog = (*backlog).max(2 * connections);
    let offload = offload(&mut experiment);
    let host = &mut offload.host;
    host.interface.most_sockets = host.interface.most_sockets.max(4 * connections);
    let adapter = &mut offload.adapter.interface;
    adapter.most_sockets = adapter.most_sockets.max(4 * connections);
    adapter.most_backlog = adapter.most_backlog.max(2 * connections);
    offload.link.buffers = offload.link.buffers.max(16 * connections);
    let replies = LEAST_REPLIES_PER_CONNECTION * u64::from(connections);
    let run = &mut experiment.run;
    run.warmup_responses = run.warmup_responses.max(Some(replies / 3));
    run.measured_responses = run.measured_responses.max(Some(replies));
    experiment
}

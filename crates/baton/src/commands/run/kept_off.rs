//! Explains how much content stays off the bus: from the hits that a log permits, to the content that did not cross in a run.

use crate::failure::Failure;
use crate::logs::LOGS;
use crate::runner::{Interrupt, for_all};
use baton_cache::Simulation;
use baton_report::{self as report, Table};
use baton_sim::config::WorkloadConfig;
use baton_sim::results::{PortResults, Results};
use baton_sim::{ReplayedLog, load_workload, replayed_log};
use baton_workload::analyse::Blocks;
use baton_workload::{FileSet, RequestSpec, Sessions};
use schemars::JsonSchema;
use serde::Serialize;

/// Shares of content that stay off the bus, per cent: each takes more into account than the one before.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KeptOff {
    /// Name of the run in the experiment.
    name: String,
    /// Seed of the run.
    seed: u64,
    /// Hits of initially empty caches of the run's policy and size, with the log in its order, as in `baton trace locality`.
    log_percent: f64,
    /// Hits in the part of the log that the run measured, one connection after the other: the caches are not empty initially, and the seed
    /// determines the order.
    replayed_percent: f64,
    /// Share of the measured part of the log that would not cross the bus if whole blocks crossed even where only a part is requested.
    whole_blocks_percent: f64,
    /// Share of the content that clients received and that did not cross the bus in the run: there are many simultaneous connections, files
    /// that change or are not in memory, and content that is retransmitted or not used.
    kept_off_percent: f64,
}

/// Computes the shares of the runs that replay a log and have data caches on their NICs.
///
/// # Errors
/// Fails if the user interrupts.
pub fn of(
    results: &[Results],
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<KeptOff>, Failure> {
    let has_cache = |run: &&Results| run.nics.iter().any(|port| port.cache.is_some());
    let with_caches: Vec<&Results> = results.iter().filter(has_cache).collect();
    // Seeds, and many other differences between variants, do not change the content of a log.
    let mut firsts: Vec<&Results> = Vec::new();
    for &run in &with_caches {
        if !firsts.iter().any(|first| find_the_same(first, run)) {
            firsts.push(run);
        }
    }
    let of_logs = for_all(&firsts, "logs", threads, interrupt, |run| {
        of_log(run, interrupt)
    })?;
    let log_percent = |run: &Results| {
        let mut known = firsts.iter().zip(&of_logs);
        *known.find(|(first, _)| find_the_same(first, run))?.1
    };
    let found = for_all(&with_caches, "caches", threads, interrupt, |run| {
        of_run(run, log_percent(run)?, interrupt)
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// Returns whether empty caches of both runs have the same hits with their logs.
fn find_the_same(this: &Results, other: &Results) -> bool {
    let (one, two) = (&this.experiment, &other.experiment);
    let is_drawn = !matches!(one.workload, WorkloadConfig::Log { .. });
    one.workload == two.workload
        && (!is_drawn || one.run.seed == two.run.seed)
        && one.host.kernel.nic_cache == two.host.kernel.nic_cache
        && slots(this).eq(slots(other))
}

/// Returns the capacity of each NIC's cache, in blocks.
fn slots(run: &Results) -> impl Iterator<Item = u32> {
    let of_port = |port: &PortResults| port.cache.as_ref().map_or(0, |cache| cache.blocks.1);
    run.nics.iter().map(of_port)
}

/// Computes the shares of a run, or `None` if the log has changed.
fn of_run(run: &Results, log_percent: f64, interrupt: &Interrupt) -> Option<KeptOff> {
    let kept_off_percent = run.content_kept_off_bus_percent?;
    let (replayed_percent, whole_blocks_percent) = of_replayed(run, interrupt)?;
    Some(KeptOff {
        name: run.experiment.name.clone(),
        seed: run.experiment.run.seed,
        log_percent,
        replayed_percent,
        whole_blocks_percent,
        kept_off_percent,
    })
}

/// Bytes of requested content.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    all: u64,
    /// Bytes that were already in a cache.
    found: u64,
    /// Bytes fetched as whole blocks.
    fetched: u64,
}

impl Asked {
    fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            found: self.found - before.found,
            fetched: self.fetched - before.fetched,
        }
    }

    fn found_percent(self) -> f64 {
        100.0 * self.found as f64 / self.all as f64
    }

    fn not_fetched_percent(self) -> f64 {
        100.0 - 100.0 * self.fetched as f64 / self.all as f64
    }
}

/// The data caches of all NICs, which handle one request after the other.
struct Caches<'a> {
    files: &'a FileSet,
    blocks: Blocks,
    caches: Vec<Simulation>,
    asked: Asked,
}

impl<'a> Caches<'a> {
    /// Creates empty caches as large as those of `run`, or `None` if the files cannot be divided into blocks.
    fn new(run: &Results, files: &'a FileSet) -> Option<Self> {
        let config = &run.experiment.host.kernel.nic_cache;
        let blocks = Blocks::new(files.sizes(), config.block_bytes.into()).ok()?;
        let count = blocks.count() as usize;
        let cache = |slots| Simulation::new(slots, count, config.replacement, config.admission);
        let caches = slots(run).map(cache).collect();
        Some(Self {
            files,
            blocks,
            caches,
            asked: Asked::default(),
        })
    }

    /// Requests the first `bytes` of `file` on connection number `connection`. Connections are assigned to NICs in turn.
    fn request(&mut self, connection: usize, file: u32, bytes: u64) {
        let nic = connection % self.caches.len();
        let block_bytes = u64::from(self.blocks.block_bytes());
        let mut left = self.files.size(file);
        for reference in self.blocks.of_request(file, bytes) {
            match self.caches[nic].reference(reference) {
                true => self.asked.found += u64::from(reference.bytes),
                false => self.asked.fetched += left.min(block_bytes),
            }
            left -= left.min(block_bytes);
        }
        self.asked.all += bytes;
    }
}

/// Returns the share of the log's content that is found in the caches, per cent, or `None` if the run replays no log, or one that cannot be
/// divided into blocks.
fn of_log(run: &Results, interrupt: &Interrupt) -> Option<f64> {
    let cancelled = || interrupt.requested();
    let ReplayedLog { log, rule, .. } = replayed_log(&run.experiment, &LOGS, &cancelled).ok()??;
    let mut caches = Caches::new(run, &log.files)?;
    let sessions = Sessions::new(&log.requests, rule);
    for (request, connection) in log.requests.iter().zip(sessions.connections()) {
        if interrupt.requested() {
            return None;
        }
        caches.request(connection as usize, request.file, request.bytes);
    }
    Some(caches.asked.found_percent())
}

/// Returns the shares of the measured content that are found in the caches and that are not fetched, per cent.
fn of_replayed(run: &Results, interrupt: &Interrupt) -> Option<(f64, f64)> {
    let cancelled = || interrupt.requested();
    let (mut replayers, _) = load_workload(&run.experiment, &LOGS, &cancelled).ok()?;
    let first = replayers.first()?;
    let (files, pass) = (first.files().clone(), first.references().len());
    let mut caches = Caches::new(run, &files)?;
    let until = (run.long_run.passes? * pass as f64).round() as u64;
    let warm_up = until.saturating_sub(run.clients.responses);
    let mut script: Vec<RequestSpec> = Vec::new();
    let mut before = Asked::default();
    let mut requests = 0;
    let mut connection = 0;
    while requests < until && !interrupt.requested() {
        let replayer = connection % replayers.len();
        replayers[replayer].next_connection(&mut script);
        for request in &script {
            if requests == warm_up {
                before = caches.asked;
            }
            caches.request(connection, request.file, request.bytes);
            requests += 1;
        }
        connection += 1;
    }
    let asked = caches.asked.since(before);
    Some((asked.found_percent(), asked.not_fetched_percent()))
}

/// Renders a row for each run, and the causes of the differences between columns; empty without rows.
pub fn table(rows: &[KeptOff]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::of("run", &["log once", "replayed", "whole blocks", "kept off"])
        .titled("Content that data caches on NICs keep off the bus:");
    for row in rows {
        let percents = [
            row.log_percent,
            row.replayed_percent,
            row.whole_blocks_percent,
            row.kept_off_percent,
        ];
        let name = format!("{}, seed {}", row.name, row.seed);
        table.row(
            [
                vec![name],
                percents.map(|percent| format!("{percent:.1} %")).into(),
            ]
            .concat(),
        );
    }
    let legend = "log once: hits of initially empty caches in one pass over the log, as in `baton trace locality`; replayed: hits after the \
                  warm-up, in the order of the replay; whole blocks: the same, less the parts of blocks that are fetched but not requested; \
                  kept off: in the run itself, with many connections at a time and content that is retransmitted or sent in vain";
    format!(
        "\n{}{}",
        table.render(),
        report::wrapped(legend, report::width(), 0)
    )
}

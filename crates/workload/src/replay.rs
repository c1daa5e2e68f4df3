//! Replay of a log: its connections, one after the other, repeated forever.

mod times;

use crate::log::{Log, NotReplayable};
use crate::session::{SessionRule, Sessions};
use crate::source::{FileSet, RequestSpec, Workload};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use times::Times;

/// In which order the connections of a log are replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As in the log, whatever the seed.
    Log,
    /// In blocks of the log, whose order the seed determines, anew for each pass. Every pass has the whole log, so that sizes stay those of
    /// the log; within a block, requests for a file are as close together as in the log.
    #[default]
    Drawn,
}

/// Number of blocks that a log is cut into if their order is drawn; few enough to keep nearly all of its locality.
const BLOCKS: usize = 32;

/// A log converted to connection scripts, in order of each connection's first request.
///
/// The times in the log determine which requests share a connection, and the order of connections, but not when requests are sent: demand
/// is infinite. A [`Self::timed`] replay has waits, too. At the end of the log, the replay starts again; see [`Order`].
///
/// Every request is replayed as a request for static content, as in the papers' replayers, with the content bytes given by the log: see
/// [`crate::log`] for the rule.
#[derive(Clone, Debug)]
pub struct Replay {
    /// All scripts of the log, concatenated.
    specs: Arc<[RequestSpec]>,
    /// Range in `specs` of each connection's script, in the order of the log.
    scripts: Vec<Range<u32>>,
    /// Order of the connections in this pass; empty if it is the log's order.
    order: Vec<u32>,
    files: Arc<FileSet>,
    /// Start times of connections; `None` in a replay without waits.
    times: Option<Times>,
    next: usize,
    laps: u64,
    /// Random numbers for the order of each pass; `None` if the order is the log's.
    drawn: Option<Pcg64>,
}

impl Replay {
    /// Prepares `log` for replay under `rule`, without waits.
    ///
    /// # Errors
    /// If the log has no sizes or no request.
    pub fn new(log: &Log, rule: SessionRule) -> Result<Self, NotReplayable> {
        Self::prepare(log, rule, None)
    }

    /// Prepares `log` for replay with its own times: the first request of a connection waits after that of the previous connection in the
    /// log, the others after the previous request of their connection. If all times are whole seconds, the requests of each second are
    /// spread evenly over it. The time from the last connection to the first of the next pass is the mean time between connections.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn timed(log: &Log, rule: SessionRule) -> Result<Self, NotReplayable> {
        Self::prepare(log, rule, Some(&times::spread(&log.requests)))
    }

    fn prepare(
        log: &Log,
        rule: SessionRule,
        times_us: Option<&[u64]>,
    ) -> Result<Self, NotReplayable> {
        log.replayable()?;
        let sessions = Sessions::new(&log.requests, rule);
        let mut specs = Vec::with_capacity(log.requests.len());
        let mut scripts = Vec::with_capacity(sessions.len());
        for connection in sessions.iter() {
            let start = specs.len() as u32;
            push_script(log, rule, connection, &mut specs);
            if let Some(times_us) = times_us {
                times::set_waits(&mut specs[start as usize..], connection, times_us);
            }
            scripts.push(start..specs.len() as u32);
        }
        Ok(Self {
            specs: specs.into(),
            scripts,
            order: Vec::new(),
            files: Arc::new(log.files.clone()),
            times: times_us.map(|times_us| Times::of(&sessions, times_us)),
            next: 0,
            laps: 0,
            drawn: None,
        })
    }

    /// Changes the order of the replay to one drawn with `seed`.
    pub fn drawn(mut self, seed: u64) -> Self {
        self.drawn = Some(Pcg64::seed_from_u64(seed));
        self.begin_pass();
        self
    }

    /// Draws the order of the next pass. The log is cut at different places each time, so that no two connections are always separated.
    fn begin_pass(&mut self) {
        let Some(random) = &mut self.drawn else {
            return;
        };
        let count = self.scripts.len();
        let mut log: Vec<u32> = (0..count as u32).collect();
        log.rotate_left(random.random_range(0..count));
        let mut blocks: Vec<&[u32]> = log.chunks(count.div_ceil(BLOCKS)).collect();
        blocks.shuffle(random);
        self.order = blocks.concat();
    }

    /// Distributes the log to `parts` replayers by connection: each connection goes to the replayer with the fewest requests so far, so
    /// that all get equal shares ("split equally among all four replayers", data caching paper 5.2).
    ///
    /// # Panics
    /// If `parts` is 0.
    pub fn split(self, parts: usize) -> Vec<Self> {
        assert!(parts > 0, "the log is split into at least one part");
        let mut shares = vec![(0_u32, Vec::new()); parts];
        for (number, script) in self.scripts.iter().enumerate() {
            let (requests, share) = shares
                .iter_mut()
                .min_by_key(|(requests, _)| *requests)
                .expect("there is at least one part");
            *requests += script.len() as u32;
            share.push(number);
        }
        let replayers = shares.into_iter().map(|(_, share)| Self {
            specs: Arc::clone(&self.specs),
            scripts: share.iter().map(|&n| self.scripts[n].clone()).collect(),
            order: Vec::new(),
            files: Arc::clone(&self.files),
            times: self.times.as_ref().map(|times| times.share(&share)),
            next: 0,
            laps: 0,
            drawn: None,
        });
        replayers
            .filter(|replayer| !replayer.scripts.is_empty())
            .collect()
    }

    /// Returns the number of connections in one pass over the log.
    pub const fn connections(&self) -> usize {
        self.scripts.len()
    }

    /// Returns the number of requests in one pass over the log.
    pub fn requests(&self) -> usize {
        self.scripts.iter().map(Range::len).sum()
    }

    /// Returns the request rate of the log per second, including the gap between passes; `None` without times, or if a pass takes no time.
    pub fn requests_per_s(&self) -> Option<f64> {
        let pass_s = self.times.as_ref()?.pass_s();
        (pass_s > 0.0).then(|| self.requests() as f64 / pass_s)
    }

    /// Returns how often the log ended and was started again.
    pub const fn laps(&self) -> u64 {
        self.laps
    }

    /// Continues with connection `c` (modulo the number of connections), to replay another part of the log.
    pub const fn seek(&mut self, c: usize) {
        self.next = c % self.connections();
    }
}

impl Workload for Replay {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        let number = self
            .order
            .get(self.next)
            .map_or(self.next, |&number| number as usize);
        let Range { start, end } = self.scripts[number];
        script.clear();
        script.extend_from_slice(&self.specs[start as usize..end as usize]);
        if let Some(times) = &self.times {
            script[0].wait_ps = times.before(number);
        }
        self.next += 1;
        if self.next == self.connections() {
            self.next = 0;
            self.laps += 1;
            self.begin_pass();
        }
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn references(&self) -> &[RequestSpec] {
        &self.specs
    }

    fn connections_in_pass(&self) -> u64 {
        self.scripts.len() as u64
    }

    fn requests_per_connection(&self) -> f64 {
        self.requests() as f64 / self.connections() as f64
    }
}

/// Appends the script of one connection, given as indices into the log's requests.
fn push_script(log: &Log, rule: SessionRule, connection: &[u32], specs: &mut Vec<RequestSpec>) {
    let mut previous_us = None;
    for &index in connection {
        let request = &log.requests[index as usize];
        let gap_us = previous_us.map(|earlier| request.time_us - earlier);
        let pipelined = match (rule.pipeline_s, gap_us) {
            (Some(limit_s), Some(gap_us)) => gap_us < u64::from(limit_s) * 1_000_000,
            _ => false,
        };
        specs.push(RequestSpec {
            pipelined,
            ..RequestSpec::fixed(request.file, request.bytes)
        });
        previous_us = Some(request.time_us);
    }
}

#[cfg(test)]
mod tests;

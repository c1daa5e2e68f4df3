//! Replaying a log: its connections, one after the other, forever.

use crate::log::{Log, NotReplayable};
use crate::session::{SessionRule, Sessions};
use crate::source::{FileSet, RequestSpec, Workload};

/// A log turned into connection scripts, handed out in order of each connection's first request.
///
/// Demand is infinite: times in the log decide which requests share a connection, and in which order connections
/// come, but not when they are sent. When the log ends it starts again from its first connection.
///
/// Every request is replayed as a request for static content, as in the papers' replayers, with the content bytes
/// that the log gives for it: see [`crate::log`] for the rule.
#[derive(Clone, Debug)]
pub struct Replay {
    /// All scripts, one after the other.
    specs: Vec<RequestSpec>,
    /// Script `c` is `specs[starts[c]..starts[c + 1]]`.
    starts: Vec<u32>,
    files: FileSet,
    next: usize,
    laps: u64,
}

impl Replay {
    /// Prepares `log` for replay under `rule`.
    ///
    /// # Errors
    /// If the log has no sizes or no request.
    pub fn new(log: &Log, rule: SessionRule) -> Result<Self, NotReplayable> {
        log.replayable()?;
        let sessions = Sessions::new(&log.requests, rule);
        let mut specs = Vec::with_capacity(log.requests.len());
        let mut starts = Vec::with_capacity(sessions.len() + 1);
        for connection in sessions.iter() {
            starts.push(specs.len() as u32);
            push_script(log, rule, connection, &mut specs);
        }
        starts.push(specs.len() as u32);
        Ok(Self {
            specs,
            starts,
            files: log.files.clone(),
            next: 0,
            laps: 0,
        })
    }

    /// Connections in one pass over the log.
    pub const fn connections(&self) -> usize {
        self.starts.len() - 1
    }

    /// Requests in one pass over the log.
    pub const fn requests(&self) -> usize {
        self.specs.len()
    }

    /// How often the log ended and was started again.
    pub const fn laps(&self) -> u64 {
        self.laps
    }

    /// Goes on with connection `c` (modulo the number of connections), to replay another part of the log.
    pub const fn seek(&mut self, c: usize) {
        self.next = c % self.connections();
    }
}

impl Workload for Replay {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        let range = self.starts[self.next] as usize..self.starts[self.next + 1] as usize;
        script.clear();
        script.extend_from_slice(&self.specs[range]);
        self.next += 1;
        if self.next == self.connections() {
            self.next = 0;
            self.laps += 1;
        }
    }

    fn files(&self) -> &FileSet {
        &self.files
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

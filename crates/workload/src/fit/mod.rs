//! Fitting of a generator to a log, and evaluation of the fit.

mod error;
mod files;
mod locality;

pub use error::{FitError, FitRow, Unit};

use crate::analyse::ratio;
use crate::generate::{ConnectionSpec, Distribution, GeneratorSpec, SpecError, Step};
use crate::log::{Log, NotReplayable};
use crate::session::{SessionRule, Sessions};

/// A generator fitted to a log.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    /// The fitted parameters.
    pub spec: GeneratorSpec,
    /// Zipf exponent of the log's popularity, for information; the generator uses classes of files instead.
    pub zipf_exponent: f64,
}

impl Fit {
    /// Fits a generator to `log`, whose connections `rule` determines. This takes seconds for a log of any length, because the search for
    /// the temporal locality uses only the first 200,000 requests.
    ///
    /// # Errors
    /// If the log has no sizes, so that nothing can be fitted, or invalid ones.
    pub fn of(log: &Log, rule: SessionRule) -> Result<Self, NotReplayable> {
        log.replayable()?;
        let sessions = Sessions::new(&log.requests, rule);
        let usage = files::Usage::of(log.requests.iter(), log.files.len());
        let spec = GeneratorSpec {
            locality: locality::fit(log).map_err(NotReplayable::Blocks)?,
            connections: connections(log, &sessions),
            files: usage.classes(),
        };
        Ok(Self {
            spec,
            zipf_exponent: usage.zipf_exponent(),
        })
    }

    /// Generates a log with the same number of requests as `log` and compares the two.
    ///
    /// # Errors
    /// If the parameters were changed to invalid ones.
    pub fn error(&self, log: &Log, rule: SessionRule, seed: u64) -> Result<FitError, SpecError> {
        let requests = u32::try_from(log.requests.len()).unwrap_or(u32::MAX);
        Ok(FitError::between(
            log,
            &self.spec.generate(seed, requests)?,
            rule,
        ))
    }
}

/// Returns the requests per connection, pauses, clients and rate of a log.
fn connections(log: &Log, sessions: &Sessions) -> ConnectionSpec {
    let lengths: Vec<u64> = sessions.iter().map(|c| c.len() as u64).collect();
    let time = |index: &u32| log.requests[*index as usize].time_us;
    let pauses_us = sessions
        .iter()
        .flat_map(|c| c.windows(2).map(|pair| time(&pair[1]) - time(&pair[0])));
    let pauses_us: Vec<u64> = pauses_us.collect();
    let (first_us, last_us) = log.time_range_us().unwrap_or_default();
    let duration_s = ((last_us - first_us) as f64 / 1e6).max(1.0);
    ConnectionSpec {
        requests: exact_steps(lengths),
        pause_s: steps(pauses_us, 10, 1e-6),
        per_client: ratio(sessions.len() as u64, log.clients.len() as u64).max(1.0),
        requests_per_s: log.requests.len() as f64 / duration_s,
    }
}

/// Returns one step for each value that occurs; values over 16 are grouped by sixteenths of a power of two.
fn exact_steps(mut values: Vec<u64>) -> Distribution {
    values.sort_unstable();
    let grain = |value: u64| 1u64 << value.max(16).ilog2().saturating_sub(4);
    let same = |a: &u64, b: &u64| a / grain(*a) == b / grain(*b) && grain(*a) == grain(*b);
    let groups = values.chunk_by(same);
    let step = |group: &[u64]| Step {
        share: ratio(group.len() as u64, values.len() as u64),
        value: ratio(group.iter().sum(), group.len() as u64),
    };
    Distribution::Steps(groups.map(step).collect())
}

/// Returns `count` steps of equal share, each at the mean of its values times `scale`, or a constant 0 if there are no values.
fn steps(mut values: Vec<u64>, count: usize, scale: f64) -> Distribution {
    if values.is_empty() {
        return Distribution::Constant(0.0);
    }
    values.sort_unstable();
    let count = count.min(values.len());
    let step = |i| {
        let part = &values[i * values.len() / count..(i + 1) * values.len() / count];
        Step {
            share: ratio(part.len() as u64, values.len() as u64),
            value: ratio(part.iter().sum(), part.len() as u64) * scale,
        }
    };
    Distribution::Steps((0..count).map(step).collect())
}

#[cfg(test)]
mod tests;

//! Times of the requests of a log.

use crate::log::Request;
use crate::session::Sessions;
use crate::source::RequestSpec;

const SECOND_US: u64 = 1_000_000;
const US_PS: u64 = 1_000_000;

/// Start times of connections, relative to the first request of the log.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// Start time of each connection, microseconds.
    starts_us: Vec<u64>,
    /// Time from the first connection of a pass to that of the next, microseconds; a mean gap follows the last connection.
    pass_us: u64,
}

impl Times {
    /// Computes the times for a log whose requests were made at `times_us`.
    pub(super) fn of(sessions: &Sessions, times_us: &[u64]) -> Self {
        let start = |connection: &[u32]| times_us[connection[0] as usize] - times_us[0];
        let starts_us: Vec<u64> = sessions.iter().map(start).collect();
        let last = starts_us.last().copied().unwrap_or(0);
        let gaps = starts_us.len() as u64 - 1;
        Self {
            pass_us: last + last.checked_div(gaps).unwrap_or(0),
            starts_us,
        }
    }

    /// Returns the times of these connections only.
    pub(super) fn share(&self, connections: &[usize]) -> Self {
        Self {
            starts_us: connections.iter().map(|&n| self.starts_us[n]).collect(),
            pass_us: self.pass_us,
        }
    }

    /// Returns the length of a pass, seconds.
    pub(super) fn pass_s(&self) -> f64 {
        self.pass_us as f64 / SECOND_US as f64
    }

    /// Returns the time from the start of the previous connection to that of this one, picoseconds; the last connection precedes the first.
    pub(super) fn before(&self, number: usize) -> u64 {
        let starts = &self.starts_us;
        let gap_us = match number.checked_sub(1) {
            Some(before) => starts[number] - starts[before],
            None => starts[0] + self.pass_us - starts[starts.len() - 1],
        };
        gap_us.saturating_mul(US_PS)
    }
}

/// Returns the times of requests, microseconds. If all times are whole seconds, the requests of each second are spread evenly over it.
pub(super) fn spread(requests: &[Request]) -> Vec<u64> {
    let mut times: Vec<u64> = requests.iter().map(|request| request.time_us).collect();
    if times.iter().all(|time| time.is_multiple_of(SECOND_US)) {
        for second in times.chunk_by_mut(|one, next| one == next) {
            let count = second.len() as u64;
            for (place, time) in (0..).zip(second) {
                *time += SECOND_US * place / count;
            }
        }
    }
    times
}

/// Sets the wait of each request of a connection except the first to the time since the previous one in the log. A pipelined request is
/// sent with the one before it, and the next one that is not pipelined waits longer.
pub(super) fn set_waits(script: &mut [RequestSpec], connection: &[u32], times_us: &[u64]) {
    let time = |place: usize| times_us[connection[place] as usize];
    let mut due = time(0);
    for (place, spec) in script.iter_mut().enumerate().skip(1) {
        if !spec.pipelined {
            spec.wait_ps = (time(place) - due).saturating_mul(US_PS);
            due = time(place);
        }
    }
}

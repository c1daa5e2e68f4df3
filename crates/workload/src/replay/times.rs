//! When the requests of a log were made.

use crate::log::Request;
use crate::session::Sessions;
use crate::source::RequestSpec;

const SECOND_US: u64 = 1_000_000;
const US_PS: u64 = 1_000_000;

/// When connections begin, counted from the first request of the log.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// Of each connection, microseconds.
    starts_us: Vec<u64>,
    /// From the first connection of a pass over the log to that of the next, microseconds: the last connection is followed by a mean gap.
    pass_us: u64,
}

impl Times {
    /// Of a log whose requests were made at `times_us`.
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

    /// Of these connections only.
    pub(super) fn share(&self, connections: &[usize]) -> Self {
        Self {
            starts_us: connections.iter().map(|&n| self.starts_us[n]).collect(),
            pass_us: self.pass_us,
        }
    }

    /// Length of a pass, seconds.
    pub(super) fn pass_s(&self) -> f64 {
        self.pass_us as f64 / SECOND_US as f64
    }

    /// From the beginning of the connection before this one to its own, picoseconds; before the first is the last of the pass before.
    pub(super) fn before(&self, number: usize) -> u64 {
        let starts = &self.starts_us;
        let gap_us = match number.checked_sub(1) {
            Some(before) => starts[number] - starts[before],
            None => starts[0] + self.pass_us - starts[starts.len() - 1],
        };
        gap_us.saturating_mul(US_PS)
    }
}

/// When requests were made, microseconds. Of times that are all whole seconds, those of one second are spread evenly over it.
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

/// Has each request of a connection but the first wait as long after the previous one as in the log. What is pipelined comes with the
/// request before it, and what follows waits for longer.
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

//! Snapshots of a run's progress, evenly spaced in responses.

use baton_stats::Batch;
use baton_wire::{Span, Time};

/// Maximum number of marks. When it is reached, every second mark is dropped and the spacing is doubled.
const MOST: usize = 1024;

/// A snapshot of a run's progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at: Time,
    /// Complete responses.
    pub(super) responses: u64,
    /// Content bytes received by clients, of complete and other responses.
    pub(super) bytes: u64,
    /// Connections that clients opened, and connections that ended.
    pub(super) opened: u64,
    pub(super) ended: u64,
    /// Content bytes that crossed to NICs.
    pub(super) bus_bytes: u64,
    /// Busy time of the host.
    pub(super) host_busy: Span,
}

impl Mark {
    /// Returns the number of opens and ends of connections; each connection has both.
    const fn connection_ends(&self) -> u64 {
        self.opened + self.ended
    }
}

/// Marks since measurement began, in order.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    marks: Vec<Mark>,
    /// Number of responses between two marks.
    every: u64,
    /// Number of responses at which the next mark is due.
    next: u64,
}

impl Marks {
    /// Creates a list with the first mark.
    pub(super) fn new(first: Mark) -> Self {
        Self {
            marks: vec![first],
            every: 1,
            next: first.responses + 1,
        }
    }

    /// Reports whether the next mark is due.
    #[inline]
    pub(super) fn is_due(&self, responses: u64) -> bool {
        responses >= self.next
    }

    /// Adds a mark.
    pub(super) fn push(&mut self, mark: Mark) {
        self.marks.push(mark);
        if self.marks.len() >= MOST {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every *= 2;
        }
        let last = self.marks.last().unwrap_or(&mark);
        self.next = last.responses + self.every;
    }

    /// Returns the seconds between consecutive marks.
    pub(super) fn seconds(&self) -> Vec<Batch> {
        self.parts(|from, to| (to.at - from.at).as_secs_f64())
    }

    /// Returns the host's busy time between consecutive marks, seconds.
    pub(super) fn host_seconds(&self) -> Vec<Batch> {
        self.parts(|from, to| (to.host_busy - from.host_busy).as_secs_f64())
    }

    /// Returns the content bytes that crossed to NICs between consecutive marks.
    pub(super) fn bus_bytes(&self) -> Vec<Batch> {
        self.parts(|from, to| (to.bus_bytes - from.bus_bytes) as f64)
    }

    fn parts(&self, value: impl Fn(&Mark, &Mark) -> f64) -> Vec<Batch> {
        let part = |pair: &[Mark]| Batch {
            requests: (pair[1].responses - pair[0].responses) as f64,
            bytes: (pair[1].bytes - pair[0].bytes) as f64,
            connections: (pair[1].connection_ends() - pair[0].connection_ends()) as f64 / 2.0,
            value: value(&pair[0], &pair[1]),
        };
        self.marks.windows(2).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(responses: u64) -> Mark {
        Mark {
            at: Time::from_ps(responses * 1_000_000_000_000),
            responses,
            bytes: responses * 100,
            opened: responses / 2,
            ended: responses / 2,
            bus_bytes: responses * 10,
            host_busy: Span::from_ms(responses),
        }
    }

    #[test]
    fn the_number_of_marks_is_bounded_and_they_are_evenly_spaced() {
        let mut marks = Marks::new(mark(0));
        for responses in 1..=100_000 {
            if marks.is_due(responses) {
                marks.push(mark(responses));
            }
        }
        let parts = marks.seconds();
        assert!(
            (MOST / 2 - 1..MOST).contains(&parts.len()),
            "{}",
            parts.len()
        );
        let each = parts[0].requests;
        assert!(parts.iter().all(|part| part.requests == each), "{parts:?}");
        assert!(
            parts
                .iter()
                .all(|part| part.bytes == 100.0 * each && part.value == each)
        );
        let whole = Batch::sum(&marks.bus_bytes());
        assert!(whole.requests + each > 100_000.0 && whole.value == 10.0 * whole.requests);
        let whole = Batch::sum(&marks.host_seconds());
        assert!((whole.value / whole.requests - 1e-3).abs() < 1e-9);
        assert!((whole.connections / whole.requests - 0.5).abs() < 1e-3);
    }
}

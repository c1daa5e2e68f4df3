//! The shutdown of servers: open connections get some time to finish, then the remaining ones are reset.

use baton_wire::{Span, Time};
use std::fmt::{self, Display};

/// Maximum time that a shutdown waits for open connections.
const LONGEST: Span = Span::from_secs(5);
/// A shutdown that takes no longer than this is not reported.
const UNTOLD: Span = Span::from_ms(200);

/// A request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Continue.
    No,
    /// Stop when the open connections have finished.
    InOrder,
    /// Stop now.
    AtOnce,
}

/// The state of a shutdown that waits, for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of connections that remain.
    pub connections: usize,
}

impl Display for Waiting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = LONGEST.as_us() / 1_000_000;
        let (what, them) = match self.connections {
            1 => ("1 connection".to_owned(), "it"),
            count => (format!("{count} connections"), "them"),
        };
        write!(
            out,
            "waiting up to {seconds} s for {what}; interrupt again to reset {them}"
        )
    }
}

/// The shutdown of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End {
    /// When the remaining connections are reset; `None` before the shutdown starts.
    limit: Option<Time>,
    /// When to report the wait; `None` before the shutdown and after the report.
    tell_at: Option<Time>,
}

impl End {
    /// Handles a request; returns true if it starts the shutdown.
    pub(crate) fn handle(&mut self, now: Time, stop: Stop) -> bool {
        let begins = stop != Stop::No && self.limit.is_none();
        if begins {
            self.limit = Some(now + LONGEST);
            self.tell_at = Some(now + UNTOLD);
        }
        if stop == Stop::AtOnce {
            self.limit = self.limit.map(|limit| limit.min(now));
            self.tell_at = None;
        }
        begins
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.limit.is_some()
    }

    /// Returns whether the remaining connections must be reset now.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.limit.is_some_and(|limit| limit <= now)
    }

    /// Returns a report of the wait for `connections` connections: once, if the shutdown takes longer than a moment.
    pub(crate) fn poll_waiting(&mut self, now: Time, connections: usize) -> Option<Waiting> {
        self.tell_at.take_if(|at| *at <= now && connections > 0)?;
        Some(Waiting { connections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_reported_once_and_ended_by_a_second_request() {
        let mut end = End::default();
        let start = Time::ZERO + Span::from_secs(1);
        assert!(!end.handle(start, Stop::No));
        assert!(!end.has_begun() && !end.is_over(start));
        assert!(end.handle(start, Stop::InOrder));
        assert!(!end.handle(start, Stop::InOrder), "it has begun");
        assert_eq!(end.poll_waiting(start, 1), None, "only a moment");
        let later = start + UNTOLD;
        assert_eq!(end.poll_waiting(later, 0), None, "for nothing");
        let waiting = end.poll_waiting(later, 1).expect("it takes long");
        let text = "waiting up to 5 s for 1 connection; interrupt again to reset it";
        assert_eq!(waiting.to_string(), text);
        assert_eq!(end.poll_waiting(later, 1), None, "it was told");
        assert!(!end.is_over(later));
        assert!(!end.handle(later, Stop::AtOnce));
        assert!(end.is_over(later));
    }

    #[test]
    fn a_shutdown_ends_after_its_time_limit() {
        let mut end = End::default();
        end.handle(Time::ZERO, Stop::InOrder);
        assert!(!end.is_over(Time::ZERO + UNTOLD));
        assert!(end.is_over(Time::ZERO + LONGEST));
        let mut at_once = End::default();
        assert!(at_once.handle(Time::ZERO, Stop::AtOnce), "without a wait");
        assert!(at_once.is_over(Time::ZERO));
    }
}

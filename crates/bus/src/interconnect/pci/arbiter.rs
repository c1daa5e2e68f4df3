//! The central arbiter: round robin between the masters that request the bus.

use baton_wire::{Span, Time};

use super::rules::Rules;

/// Requests of masters, by number: the devices, then the bridge.
#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    /// When each master wants the bus; [`Time::NEVER`] if it does not, or has the bus.
    wants: Box<[Time]>,
    /// Earliest time in `wants`.
    first: Time,
    /// The master that had the bus last.
    last: usize,
}

/// The next use of the bus by a master.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Time of the decision. Later requests do not count.
    pub(super) decided_at: Time,
    /// From this time on, no other master can have the bus.
    pub(super) from: Time,
    /// Start of the address phase.
    pub(super) start: Time,
}

impl Arbiter {
    /// Creates an arbiter. Initially, the last master counts as the one that had the bus last.
    pub(super) fn new(masters: usize) -> Self {
        Self {
            wants: vec![Time::NEVER; masters].into(),
            first: Time::NEVER,
            last: masters - 1,
        }
    }

    /// Records that `master` wants the bus from `at` on; [`Time::NEVER`] if it does not.
    #[inline]
    pub(super) fn request(&mut self, master: usize, at: Time) {
        let before = std::mem::replace(&mut self.wants[master], at);
        self.first = if at <= before {
            self.first.min(at)
        } else {
            self.wants
                .iter()
                .fold(Time::NEVER, |first, &at| first.min(at))
        };
    }

    /// Returns the earliest time at which a master without the bus wants it.
    pub(super) fn first_request(&self) -> Time {
        self.first
    }

    /// Returns the next turn on a bus that is free from `free_at` on, or `None` if no master wants it.
    pub(super) fn next_turn(&self, free_at: Time, rules: &Rules) -> Option<Turn> {
        let wanted = self.first_request();
        let waits = wanted < free_at;
        let decided_at = match wanted {
            Time::NEVER => return None,
            _ if waits => free_at,
            _ => rules.edge(wanted),
        };
        let (before, within) = match (rules.hidden_arbitration, waits) {
            (true, true) => (Span::ZERO, Span::ZERO),
            // The bus is idle during arbitration, and that time belongs to no transaction.
            (true, false) => (rules.arbitration, Span::ZERO),
            (false, _) => (Span::ZERO, rules.arbitration),
        };
        let from = decided_at + before;
        Some(Turn {
            decided_at,
            from,
            start: from + within,
        })
    }

    /// Grants the bus at `at` to the first master after the last one, in round-robin order, that wants it by then. There must be one.
    pub(super) fn grant(&mut self, at: Time) -> usize {
        let masters = self.wants.len();
        let mut master = self.last;
        loop {
            master = if master + 1 == masters { 0 } else { master + 1 };
            if self.wants[master] <= at {
                break;
            }
            debug_assert!(master != self.last, "nobody wants the bus");
        }
        self.last = master;
        self.request(master, Time::NEVER);
        master
    }
}

//! The central arbiter: round robin between the masters that want the bus.

use baton_wire::{Span, Time};

use super::rules::Rules;

/// Masters by number: the devices, and after them the bridge.
#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    /// When each wants the bus; [`Time::NEVER`] if it does not, or has it.
    wants: Box<[Time]>,
    /// The first of them.
    first: Time,
    /// Who had the bus last.
    last: usize,
}

/// When a master gets the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Requests that come later do not count.
    pub(super) decided_at: Time,
    /// From then on nobody else can have the bus.
    pub(super) from: Time,
    /// The address phase.
    pub(super) start: Time,
}

impl Arbiter {
    /// The last of the masters counts as the one that had the bus.
    pub(super) fn new(masters: usize) -> Self {
        Self {
            wants: vec![Time::NEVER; masters].into(),
            first: Time::NEVER,
            last: masters - 1,
        }
    }

    /// `master` wants the bus from `at` on; [`Time::NEVER`] if it does not.
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

    /// When the first master wants the bus that does not have it.
    pub(super) fn first_request(&self) -> Time {
        self.first
    }

    /// The next turn on a bus that is free from `free_at` on; none if nobody wants it.
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
            // The bus is idle while the arbiter decides: this is no transaction's time.
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

    /// Gives the bus at `at` to the first after the last master, all around, that wants it by then. One does.
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

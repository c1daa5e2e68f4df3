//! A model of the protocol by which one connection moves between the kernel and an adapter.
//!
//! A model checker tries each order of the steps of application, kernel, broker and adapter, with a kill between any two of them, and
//! successors of broker and adapter. A process that is stopped is one whose next step comes late, so each order covers it. The peer and the
//! application exchange requests and responses of one byte. Only numbers of bytes are modelled: what a byte is follows from its position.
//!
//! The steps have the names of what they do in `crates/live/src/broker` and `crates/live/src/adapter`.
#![cfg(feature = "model")]

mod properties;
mod state;
mod steps;

pub use properties::{Ending, MOVES_ON, ONE_OWNER, RIGHT_BYTES};
pub use state::{At, Job, State, Victim};
pub use steps::Step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Rules of the protocol that can be left out, to see that each is needed.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whoever takes a connection on claims its place by compare-and-swap first: the adapter before it makes the connection, the broker before it
    /// puts one back or resets it.
    pub claims: bool,
    /// A state can be used once: a place knows whether its connection was on the adapter.
    pub kinds: bool,
    /// The adapter gives the place to the application before the application gets the state.
    pub passes_first: bool,
    /// A packet leaves the adapter only after what it says stands in the record.
    pub records_first: bool,
    /// The broker has the peer asked before it gives the place free.
    pub asks_first: bool,
    /// Each connection that nobody brings back is reset, and its peer asked; not only forgotten.
    pub asks_late: bool,
    /// A broker that finds places of its predecessor resets those that the predecessor had claimed.
    pub resets_claimed: bool,
    /// It has the peer asked of a connection that an application wants back and nobody knows.
    pub asks_for_unknown: bool,
    /// An application is told that its connection is lost once the peer was asked, not before.
    pub answers_last: bool,
    /// A restored socket is reset, not closed, if it goes before the application has it.
    pub lingers: bool,
    /// A state that the adapter has not taken can be brought back also after the adapter has ended.
    pub gives_back_after_end: bool,
    /// An application asks the next broker again for what it has no answer about.
    pub asks_again: bool,
    /// An application whose request to take a connection was not answered finds out whether the kernel still has it.
    pub doubts: bool,
    /// What an adapter had claimed and not begun, can be brought back after the adapter was killed; it is not taken for one that has ended.
    pub tells_claimed: bool,
    /// An adapter without a broker resets connections that are neither its own nor brought back.
    pub resets_alone: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            claims: true,
            kinds: true,
            passes_first: true,
            records_first: true,
            asks_first: true,
            asks_late: true,
            resets_claimed: true,
            asks_for_unknown: true,
            answers_last: true,
            lingers: true,
            gives_back_after_end: true,
            asks_again: true,
            doubts: true,
            tells_claimed: true,
            resets_alone: true,
        }
    }
}

/// How much may happen in a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Requests of the peer, each with a response.
    pub requests: u8,
    /// Times that the application begins to move the connection.
    pub moves: u8,
    /// Kills of application, broker and adapter; all together at most `most_kills`.
    pub kills: [u8; 3],
    /// See `kills`.
    pub most_kills: u8,
    /// Brokers and adapters that are started later.
    pub successors: [u8; 2],
    /// Imports that the adapter refuses, and sockets that the broker cannot repair.
    pub failures: u8,
    /// Requests that no library of ours makes: an old state, or one that is also on its way to the adapter.
    pub forged: u8,
    /// Time limits pass only when nothing else can happen. Otherwise they pass at any moment, as they do where processes are stopped.
    pub patient: bool,
}

/// A protocol and what is tried of it.
#[derive(Debug)]
pub struct Protocol {
    /// What it consists of.
    pub rules: Rules,
    /// What happens.
    pub bounds: Bounds,
    /// Who was killed first, and where the connection was, with each way in which it ended.
    pub endings: Mutex<BTreeMap<(Victim, &'static str), BTreeSet<Ending>>>,
}

impl Protocol {
    /// Nothing was tried yet.
    pub fn new(rules: Rules, bounds: Bounds) -> Self {
        let endings = Mutex::default();
        Self {
            rules,
            bounds,
            endings,
        }
    }
}

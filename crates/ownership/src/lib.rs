//! A model of the protocol by which one connection moves between the kernel and an adapter.
//!
//! A model checker tries every order of the steps of application, kernel, broker and adapter, with a kill after any step, and with
//! successors of broker and adapter. A stopped process is one whose next step comes late, so these orders include it. The peer and the
//! application exchange requests and responses of one byte. The model only counts bytes: a byte's value follows from its position.
//!
//! The steps are named after what they do in `crates/live/src/broker` and `crates/live/src/adapter`.
//!
//! | to find | look in |
//! |---|---|
//! | rules of the protocol, limits of what is tried | [`Rules`], [`Bounds`] |
//! | the state of the model | [`State`] |
//! | the steps that lead from state to state | [`Step`], `src/steps.rs`, `src/steps/` |
//! | what must hold in every state | `src/properties.rs` |
//! | runs of the checker, also without each rule | `tests/protocol.rs` |
#![cfg(feature = "model")]

mod properties;
mod state;
mod steps;

pub use properties::{Ending, MOVES_ON, ONE_OWNER, RIGHT_BYTES};
pub use state::{At, Job, State, Victim};
pub use steps::Step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Rules of the protocol. Each can be left out, to show that it is needed.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whoever takes over a connection first claims its place by compare-and-swap: the adapter before it creates the connection, the broker
    /// before it restores or resets the connection.
    pub claims: bool,
    /// A state can be used only once: the place records whether its connection was on the adapter.
    pub kinds: bool,
    /// The adapter makes the application the owner of the place before it sends the state to the application.
    pub passes_first: bool,
    /// A packet leaves the adapter only after the record contains what the packet acknowledges and carries.
    pub records_first: bool,
    /// The broker probes the peer before it frees the place: a kernel without a socket resets the connection when the peer answers.
    pub asks_first: bool,
    /// The broker resets every connection that nobody brings back, and probes its peer, instead of only forgetting the connection.
    pub asks_late: bool,
    /// A broker that finds places of its predecessor resets those that the predecessor had claimed.
    pub resets_claimed: bool,
    /// The broker probes the peer of a connection that an application wants back and that nobody knows.
    pub asks_for_unknown: bool,
    /// An application learns that its connection is lost only after the peer was probed.
    pub answers_last: bool,
    /// A restored socket is reset, not closed, if it is dropped before the application has it.
    pub lingers: bool,
    /// A state that the adapter has not taken can be given back even after the adapter has ended.
    pub gives_back_after_end: bool,
    /// An application repeats unanswered requests to the next broker.
    pub asks_again: bool,
    /// An application whose TAKE was not answered finds out whether the kernel still has the connection.
    pub doubts: bool,
    /// A connection that a killed adapter had claimed but not begun can be given back; it does not count as one that has ended.
    pub tells_claimed: bool,
    /// An adapter without a broker resets connections that it does not own and that nobody has given back.
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

/// Limits of what may happen in a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Number of the peer's requests, each of which has a response.
    pub requests: u8,
    /// Number of times that the application begins to move the connection.
    pub moves: u8,
    /// Number of kills of application, broker and adapter; in total at most `most_kills`.
    pub kills: [u8; 3],
    /// Maximum total number of kills.
    pub most_kills: u8,
    /// Number of brokers and adapters that are started later.
    pub successors: [u8; 2],
    /// Number of imports that the adapter refuses and of sockets that the broker fails to repair.
    pub failures: u8,
    /// Number of requests that our library would not make: with an old state, or with one that is also on its way to the adapter.
    pub forged: u8,
    /// Whether timeouts expire only when nothing else can happen. Otherwise they expire at any moment, as with stopped processes.
    pub patient: bool,
}

/// A protocol, with the limits of what the model checker tries.
#[derive(Debug)]
pub struct Protocol {
    /// The rules in force.
    pub rules: Rules,
    /// The limits of a run.
    pub bounds: Bounds,
    /// For each first victim and location of the connection at that time, the ways in which runs ended.
    pub endings: Mutex<BTreeMap<(Victim, &'static str), BTreeSet<Ending>>>,
}

impl Protocol {
    /// Creates a protocol of which nothing was tried yet.
    pub fn new(rules: Rules, bounds: Bounds) -> Self {
        let endings = Mutex::default();
        Self {
            rules,
            bounds,
            endings,
        }
    }
}

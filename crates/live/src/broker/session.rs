//! An adapter that a broker has, or has had.

use super::memory::{CAPACITY, Memory, Owner, Table};
use baton_host::SelectionConfig;
use baton_tcp::Config;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::Instant;

/// What an adapter sends to the broker when it attaches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    /// The interface that the adapter expects the broker to serve.
    pub(super) interface: String,
    /// Number of the interface's network namespace.
    pub(super) namespace: u64,
    /// Parameters of connections that come from the kernel.
    pub(super) tcp: Config,
    /// Name of the policy for applications that have none of their own.
    pub(super) policy: String,
}

/// The broker's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    /// Whether the program that finds the packets runs in the driver.
    pub(super) is_native: bool,
    /// Number of receive queues. The adapter must give a socket for each.
    pub(super) queues: u32,
}

/// An adapter, and the memory that survives it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) memory: Memory,
    pub(super) pid: u32,
    pub(super) tcp: Config,
    pub(super) policy: SelectionConfig,
    /// When the broker noticed that the adapter had disappeared.
    pub(super) gone: OnceLock<Instant>,
}

impl Session {
    /// Creates the session of an adapter, with memory that is new or that the adapter has used before.
    pub(super) fn new(memory: Memory, pid: u32, tcp: Config, policy: SelectionConfig) -> Self {
        Self {
            memory,
            pid,
            tcp,
            policy,
            gone: OnceLock::new(),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.get().is_some()
    }
}

/// What an adapter sends to the next broker: whether its programs run in the driver, and what it sent to the broker before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Return {
    pub(super) is_native: bool,
    pub(super) arrival: Arrival,
}

/// The free places. Those that were used before are taken first.
#[derive(Debug, Default)]
pub(super) struct FreePlaces {
    used: Vec<u32>,
    /// The first place that was never used.
    next: u32,
}

impl FreePlaces {
    /// Returns the free places of memory that is in use.
    pub(super) fn of(table: &Table) -> Self {
        let is_free = |place: &u32| table.places[*place as usize].owner().1 == Owner::Nobody;
        Self {
            used: (0..CAPACITY as u32).rev().filter(is_free).collect(),
            next: CAPACITY as u32,
        }
    }

    pub(super) fn take(&mut self) -> Option<u32> {
        self.used.pop().or_else(|| {
            let place = self.next;
            self.next += u32::from((place as usize) < CAPACITY);
            ((place as usize) < CAPACITY).then_some(place)
        })
    }

    pub(super) fn give(&mut self, place: u32) {
        self.used.push(place);
    }
}

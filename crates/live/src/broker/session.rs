//! One adapter that a broker has, or has had.

use super::memory::{CAPACITY, Memory, Owner, Table};
use baton_host::SelectionConfig;
use baton_tcp::Config;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::Instant;

/// What an adapter tells the broker when it comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    /// The interface that it is to be on.
    pub(super) interface: String,
    /// The number of the network namespace that the interface is in.
    pub(super) namespace: u64,
    /// Parameters of connections that come from the kernel.
    pub(super) tcp: Config,
    /// The policy of applications that have none of their own, by its name.
    pub(super) policy: String,
}

/// What it is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    /// Whether the program that finds its packets runs in the driver.
    pub(super) is_native: bool,
    /// Receive queues, for each of which it is to give a socket.
    pub(super) queues: u32,
}

/// An adapter, and the memory that is left of it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) memory: Memory,
    pub(super) pid: u32,
    pub(super) tcp: Config,
    pub(super) policy: SelectionConfig,
    /// When it was found to be gone.
    pub(super) gone: OnceLock<Instant>,
}

impl Session {
    /// For an adapter of this process, with memory that is new or that it has had before.
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

/// What an adapter tells a broker that comes after its own: that its programs run in the driver, and what it told that one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Return {
    pub(super) is_native: bool,
    pub(super) arrival: Arrival,
}

/// The places that are free, those that were used before first.
#[derive(Debug, Default)]
pub(super) struct FreePlaces {
    used: Vec<u32>,
    /// From here on none was.
    next: u32,
}

impl FreePlaces {
    /// Those of a memory that is in use.
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

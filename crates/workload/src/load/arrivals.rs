//! Arrival times of connections.

use super::on_off::{OnOff, OnOffSpec};
use super::{exponential, picoseconds};
use crate::source::SECOND_PS;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When connections arrive in an open loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At the log's own times, scaled to the rate, as are the requests on each connection.
    Log,
    /// Evenly spaced.
    Even,
    /// As a Poisson process. (Sessions of users arrive like this within an hour; Paxson and Floyd, *Wide-Area Traffic: The Failure of
    /// Poisson Modeling*, 1995.)
    Poisson,
    /// From many sources that are on and off for heavy-tailed times ([`OnOffSpec`]).
    OnOff,
}

/// An arrival process.
#[derive(Clone, Debug)]
pub(super) enum Process {
    /// Arrivals at this interval, in picoseconds.
    Even(u64),
    /// Arrivals at this mean interval, in picoseconds.
    Poisson(f64, Pcg64),
    OnOff(OnOff),
}

impl Process {
    /// Creates a process with `per_second` connections a second, or `None` for the log's times, which are not drawn.
    pub(super) fn new(
        arrivals: Arrivals,
        per_second: f64,
        on_off: &OnOffSpec,
        seed: u64,
    ) -> Option<Self> {
        match arrivals {
            Arrivals::Log => None,
            Arrivals::Even => Some(Self::Even(picoseconds(1.0 / per_second))),
            Arrivals::Poisson => Some(Self::Poisson(
                SECOND_PS as f64 / per_second,
                Pcg64::seed_from_u64(seed),
            )),
            Arrivals::OnOff => Some(Self::OnOff(OnOff::new(on_off, per_second, seed))),
        }
    }

    /// Returns the time from the last arrival to the next, picoseconds.
    pub(super) fn next_wait(&mut self) -> u64 {
        match self {
            Self::Even(gap) => *gap,
            Self::Poisson(mean, random) => (*mean * exponential(random)) as u64,
            Self::OnOff(sources) => sources.next_wait(),
        }
    }
}

//! The length of a run or of a part of it.

use super::Machine;
use crate::config::Length;
use baton_wire::{Span, Time};

/// The end of a run or of a part of it, measured from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Number of frames at the server's NICs, both directions.
    Packets(u64),
    /// Number of complete responses.
    Responses(u64),
    /// A point in simulated time.
    Time(Time),
}

impl Machine {
    /// Returns the goal for a run of this length. Passes over a workload that is not a log are rejected when the machine is created.
    pub(super) fn goal(&self, length: Length) -> Goal {
        match length {
            Length::Packets(packets) => Goal::Packets(packets),
            Length::Responses(responses) => Goal::Responses(responses),
            Length::Seconds(seconds) => {
                Goal::Time(Time::ZERO + Span::from_ps((seconds * 1e12).ceil() as u64))
            }
            Length::Passes(passes) => {
                let requests = self.clients.log.map_or(0, |log| log.requests);
                Goal::Responses((passes * requests as f64).ceil() as u64)
            }
        }
    }

    /// Returns the goal that is as far from now as `goal` is from the start.
    pub(super) fn after_now(&self, goal: Goal) -> Goal {
        match goal {
            Goal::Packets(packets) => Goal::Packets(self.packets() + packets),
            Goal::Responses(responses) => Goal::Responses(self.responses() + responses),
            Goal::Time(time) => Goal::Time(self.now + (time - Time::ZERO)),
        }
    }

    #[inline]
    pub(super) fn has_reached(&self, goal: Goal) -> bool {
        match goal {
            Goal::Packets(packets) => self.packets() >= packets,
            Goal::Responses(responses) => self.responses() >= responses,
            Goal::Time(time) => self.now >= time,
        }
    }

    /// Returns the share of the way to `goal` that is done. The way includes the goal `after` it if both count in the same unit.
    pub(super) fn share(&self, goal: Goal, after: Option<Goal>) -> f64 {
        let share = |done: u64, all: u64| done as f64 / all.max(1) as f64;
        match (goal, after) {
            (Goal::Packets(all), None) => share(self.packets(), all),
            (Goal::Packets(all), Some(Goal::Packets(more))) => share(self.packets(), all + more),
            (Goal::Responses(all), None) => share(self.responses(), all),
            (Goal::Responses(all), Some(Goal::Responses(more))) => {
                share(self.responses(), all + more)
            }
            (Goal::Time(end), _) => share(self.now.as_ps(), end.as_ps()),
            _ => 0.0,
        }
    }
}

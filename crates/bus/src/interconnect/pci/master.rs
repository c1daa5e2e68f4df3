//! Who wants the bus: devices with their queues, and the bridge for the processor.

use std::collections::VecDeque;

use baton_wire::Time;

use super::queued::Queued;
use super::rules::ReadRule;
use crate::interconnect::job::Job;
use crate::interconnect::{DeviceId, Operation};

/// A device as a master of the bus. Its transfers go in order.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// When it wants the bus, as of the last [`Device::ask`]; [`Time::NEVER`] if it does not.
    pub(super) wants: Time,
    pub(super) queue: VecDeque<Queued>,
    /// Bursts of the first transfer's first piece have been made, or it has been asked for in part.
    pub(super) started: bool,
    /// After an attempt that was answered with retry it does not ask for the bus before.
    pub(super) eligible_at: Time,
    /// When the bridge has the data of a delayed read; unknown before the first attempt.
    pub(super) data_at: Option<Time>,
    /// Bytes of the first transfer that were asked for by split requests.
    pub(super) requested: u64,
    /// Reads that wait for their data, in order. The first of `queue` may be among them when it is asked for in part.
    pub(super) splits: VecDeque<Job>,
    /// Split requests whose completion is not over.
    pub(super) under_way: u32,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            wants: Time::NEVER,
            queue: VecDeque::new(),
            started: false,
            eligible_at: Time::ZERO,
            data_at: None,
            requested: 0,
            splits: VecDeque::new(),
            under_way: 0,
        }
    }
}

impl Device {
    /// Something changed: works out when it wants the bus.
    pub(super) fn ask(&mut self, rule: &ReadRule) {
        self.wants = self.wants_at(rule).unwrap_or(Time::NEVER);
    }

    fn wants_at(&self, rule: &ReadRule) -> Option<Time> {
        let head = &self.queue.front()?.job;
        if let ReadRule::Split { outstanding, .. } = rule
            && head.operation == Operation::DmaRead
            && self.under_way >= *outstanding
        {
            return None;
        }
        Some(head.arrival.max(self.eligible_at))
    }

    /// Goes on to the next transfer, and gives the one before.
    pub(super) fn advance(&mut self) -> Option<Queued> {
        self.started = false;
        self.eligible_at = Time::ZERO;
        self.data_at = None;
        self.requested = 0;
        self.queue.pop_front()
    }
}

/// The host bridge as a master: for the processor, and for the data of split reads.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    /// When it wants the bus, as of the last [`Bridge::ask`]; [`Time::NEVER`] if it does not.
    pub(super) wants: Time,
    /// Register accesses, in order.
    pub(super) accesses: VecDeque<Job>,
    /// Data on their way to devices, in order of the time when they are there.
    pub(super) completions: VecDeque<Completion>,
}

/// Data that one split request asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) device: DeviceId,
    pub(super) ready_at: Time,
    /// Bytes that are left to bring.
    pub(super) bytes: u64,
    /// Whether the transfer is done with it.
    pub(super) last: bool,
    /// Whether that is reported.
    pub(super) reported: bool,
}

impl Default for Bridge {
    fn default() -> Self {
        Self {
            wants: Time::NEVER,
            accesses: VecDeque::new(),
            completions: VecDeque::new(),
        }
    }
}

impl Bridge {
    /// Something changed: works out when it wants the bus.
    pub(super) fn ask(&mut self) {
        let access = self.accesses.front().map_or(Time::NEVER, |job| job.arrival);
        let data = self
            .completions
            .front()
            .map_or(Time::NEVER, |data| data.ready_at);
        self.wants = access.min(data);
    }

    /// Whether an access is to go next: what has waited longer goes first.
    pub(super) fn accesses_first(&self) -> bool {
        match (self.accesses.front(), self.completions.front()) {
            (Some(access), Some(data)) => access.arrival <= data.ready_at,
            (access, _) => access.is_some(),
        }
    }
}

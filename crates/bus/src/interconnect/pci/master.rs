//! Masters of the bus: devices with their queues, and the bridge for the processor.

use std::collections::VecDeque;

use baton_wire::Time;

use super::queued::Queued;
use super::rules::{Phases, ReadRule, Rules};
use super::transaction::{Kind, Plan};
use crate::interconnect::job::Job;
use crate::interconnect::{DeviceId, Operation};

/// A device as a master of the bus. Its transfers are in order.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) queue: VecDeque<Queued>,
    /// Earliest time at which the device requests the bus again, after a retry.
    pub(super) eligible_at: Time,
    /// When the bridge has the data of a delayed read; unknown before the first attempt.
    pub(super) data_at: Option<Time>,
    /// Bytes of the first transfer that split requests have asked for.
    pub(super) requested: u64,
    /// Reads that wait for their data, in order. The first of `queue` may be among them if only part of it was requested.
    pub(super) splits: VecDeque<Job>,
    /// Number of split requests whose completion is pending.
    pub(super) under_way: u32,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            eligible_at: Time::ZERO,
            data_at: None,
            requested: 0,
            splits: VecDeque::new(),
            under_way: 0,
        }
    }
}

impl Device {
    /// Returns when the device wants the bus; [`Time::NEVER`] if it does not.
    pub(super) fn wants(&self, rules: &Rules) -> Time {
        let Some(Queued { job, .. }) = self.queue.front() else {
            return Time::NEVER;
        };
        if let ReadRule::Split { outstanding, .. } = rules.read
            && job.transfer.operation == Operation::DmaRead
            && self.under_way >= outstanding
        {
            return Time::NEVER;
        }
        job.arrival.max(self.eligible_at)
    }

    /// Returns the device's transaction that starts at `start`.
    pub(super) fn plan(&self, start: Time, rules: &Rules) -> Plan {
        let queued = &self.queue[0];
        let left = queued.job.left_bytes();
        if let Some(run) = rules.run_of(queued.job.transfer.operation) {
            return Plan {
                kind: Kind::Data,
                head: if queued.started { run.next } else { run.first },
                bytes: left,
                time: queued.time,
            };
        }
        match rules.read {
            ReadRule::Delayed { attempt, .. } if self.data_at.is_none_or(|at| at > start) => {
                Plan::without_data(Kind::Retry, attempt, 0)
            }
            ReadRule::Split {
                request,
                request_bytes,
                ..
            } => {
                let bytes = (left - self.requested).min(request_bytes);
                Plan::without_data(Kind::SplitRequest, request, bytes)
            }
            ReadRule::Delayed { .. } | ReadRule::Waits(_) => {
                let Phases { head, burst_bytes } = rules.completion();
                Plan::burst(Kind::Data, head, left.min(burst_bytes.get()), rules)
            }
        }
    }

    /// Advances to the next transfer.
    pub(super) fn advance(&mut self) {
        self.queue.pop_front();
        self.eligible_at = Time::ZERO;
        self.data_at = None;
        self.requested = 0;
    }
}

/// The host bridge as a master: for the processor, and for the data of split reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Bridge {
    /// Register accesses, in order.
    pub(super) accesses: VecDeque<Job>,
    /// Data for devices, in the order in which it becomes available.
    pub(super) completions: VecDeque<Completion>,
}

/// Data that one split request asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) device: DeviceId,
    pub(super) ready_at: Time,
    /// Bytes that remain to be transferred.
    pub(super) bytes: u64,
    /// Whether this is the last data of the transfer.
    pub(super) last: bool,
    /// Whether the completion of the transfer is reported.
    pub(super) reported: bool,
}

impl Bridge {
    /// Returns when the processor wants the bus; [`Time::NEVER`] if it does not.
    fn access_at(&self) -> Time {
        self.accesses.front().map_or(Time::NEVER, |job| job.arrival)
    }

    /// Returns when the next data for a device are available; [`Time::NEVER`] if there are none.
    fn data_at(&self) -> Time {
        let data = self.completions.front();
        data.map_or(Time::NEVER, |data| data.ready_at)
    }

    /// Returns when the bridge wants the bus; [`Time::NEVER`] if it does not.
    pub(super) fn wants(&self) -> Time {
        self.access_at().min(self.data_at())
    }

    /// Returns the bridge's next transaction and its device. The work that has waited longer goes first.
    pub(super) fn plan(&self, rules: &Rules) -> (DeviceId, Plan) {
        if self.access_at() <= self.data_at() {
            let access = &self.accesses[0];
            let head = match access.transfer.operation {
                Operation::RegisterRead => rules.register_read,
                _ => rules.register_write,
            };
            let plan = Plan::burst(Kind::Data, head, access.left_bytes(), rules);
            return (access.transfer.device, plan);
        }
        let data = &self.completions[0];
        let Phases { head, burst_bytes } = rules.completion();
        let bytes = data.bytes.min(burst_bytes.get());
        let plan = Plan::burst(Kind::SplitCompletion, head, bytes, rules);
        (data.device, plan)
    }
}

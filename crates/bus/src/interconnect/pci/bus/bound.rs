//! Lower bounds of the completion times of transfers.

use baton_wire::{Span, Time};

use super::SharedBus;
use crate::interconnect::job::Job;
use crate::interconnect::pci::master::Completion;
use crate::interconnect::pci::rules::{Phases, ReadRule};
use crate::interconnect::pci::transaction::{Kind, Transaction};
use crate::interconnect::{Operation, Transfer};

impl SharedBus {
    /// Records the submission of a reported transfer that takes at least `time` once it has the bus; zero if that is unknown.
    pub(super) fn expect(&mut self, time: Span) {
        match &self.transaction {
            Some(on_bus) if time > Span::ZERO => {
                let free_at = on_bus.data_end + self.rules.between_bursts;
                self.done.expect(free_at + time);
            }
            _ => self.done.changed(),
        }
    }

    /// Returns a lower bound of the completion times of all pending transfers; [`Time::NEVER`] if there are none.
    #[inline(never)]
    pub(super) fn earliest_done(&self) -> Time {
        let Some(on_bus) = &self.transaction else {
            let turn = self.arbiter.next_turn(self.free_at, &self.rules);
            return turn.map_or(Time::NEVER, |turn| self.others_done(turn.start));
        };
        let free_at = on_bus.data_end + self.rules.between_bursts;
        let current = self.current_done(on_bus);
        if current <= free_at {
            return current;
        }
        current.min(self.others_done(free_at))
    }

    /// Returns when the transfer on the bus completes; [`Time::NEVER`] if this transaction does not complete it, or if it is not reported.
    fn current_done(&self, on_bus: &Transaction) -> Time {
        let job = match on_bus.kind {
            Kind::Data => self.head(on_bus.master),
            Kind::SplitCompletion => self.devices[on_bus.device.index()].splits.front(),
            Kind::Retry | Kind::SplitRequest => None,
        };
        match job {
            Some(job) if job.transfer.reported && job.left_bytes() == on_bus.bytes => {
                on_bus.data_end + self.rules.after_data(job.transfer.operation)
            }
            _ => Time::NEVER,
        }
    }

    fn head(&self, master: usize) -> Option<&Job> {
        match self.devices.get(master) {
            Some(device) => device.queue.front().map(|queued| &queued.job),
            None => self.bridge.accesses.front(),
        }
    }

    /// Returns the earliest completion of a transfer that is not on the bus, if the bus is available from `free_at` on.
    fn others_done(&self, free_at: Time) -> Time {
        let mut first = Time::NEVER;
        for (master, device) in self.devices.iter().enumerate() {
            if device.queue.is_empty() {
                continue;
            }
            let done = match self.bytes_on_bus(master) {
                None => self.queue_done(master, 0, free_at),
                Some(bytes) => self.rest_done(master, bytes, free_at),
            };
            first = first.min(done);
        }
        if !self.bridge.accesses.is_empty() {
            first = first.min(self.access_done(free_at));
        }
        if !self.bridge.completions.is_empty() {
            first = first.min(self.completion_done(free_at));
        }
        first
    }

    /// Returns the earliest completion of a reported transfer in a device's queue from `place` on. It need not be the first in the queue: a
    /// split read waits for its data, a posted write for memory, while others proceed. [`Time::NEVER`] if none is reported.
    fn queue_done(&self, master: usize, place: usize, free_at: Time) -> Time {
        let queue = &self.devices[master].queue;
        let (mut from, mut best, mut place) = (free_at, Time::NEVER, place);
        // Usually one or two iterations suffice.
        while from < best
            && let Some(queued) = queue.get(place)
        {
            let Transfer {
                operation,
                reported,
                ..
            } = queued.job.transfer;
            let data_end = if queued.time > Span::ZERO {
                from + queued.time
            } else {
                self.alone_in_parts(master, place, from, queued.job.left_bytes())
            };
            if reported {
                best = best.min(data_end + self.rules.after_data(operation));
            }
            if !self.is_split(operation) {
                from = data_end + self.rules.between_bursts;
            }
            place += 1;
        }
        best
    }

    /// Returns the earliest completion for a device while the bus carries `on_bus` bytes of its first transfer.
    fn rest_done(&self, master: usize, on_bus: u64, free_at: Time) -> Time {
        let job = &self.devices[master].queue[0].job;
        let left = job.left_bytes() - on_bus;
        if left == 0 {
            return self.queue_done(master, 1, free_at);
        }
        let operation = job.transfer.operation;
        let data_end = match self.rules.run_of(operation) {
            // The rest may consist of several pieces. A lower bound has the fewest bursts, with the shortest heads.
            Some(run) => {
                let (head, burst_bytes) = (run.first.min(run.next), run.burst_bytes);
                free_at + self.rules.time_alone(Phases { head, burst_bytes }, left)
            }
            None => self.alone_in_parts(master, 0, free_at, left),
        };
        let others = self.queue_done(master, 1, data_end + self.rules.between_bursts);
        if job.transfer.reported {
            return others.min(data_end + self.rules.after_data(operation));
        }
        others
    }

    /// Returns the number of bytes of a master's first transfer that the bus carries, if any.
    #[inline]
    fn bytes_on_bus(&self, master: usize) -> Option<u64> {
        match &self.transaction {
            Some(on_bus) if on_bus.master == master && on_bus.kind == Kind::Data => {
                Some(on_bus.bytes)
            }
            _ => None,
        }
    }

    /// Returns whether the operation is a read that leaves the bus to others while it waits for its data.
    fn is_split(&self, operation: Operation) -> bool {
        operation == Operation::DmaRead && matches!(self.rules.read, ReadRule::Split { .. })
    }

    /// Returns the earliest time at which `left` bytes of a read that leaves the bus to others, at `place` of a device's queue, arrive if
    /// the device gets the bus at `from` and no other master wants it.
    fn alone_in_parts(&self, master: usize, place: usize, from: Time, left: u64) -> Time {
        let rules = &self.rules;
        let completion = rules.completion().head;
        let on_bus = self.transaction.as_ref();
        let on_bus = on_bus.filter(|on_bus| on_bus.master == master);
        match rules.read {
            ReadRule::Split {
                request, latency, ..
            } => {
                let requested_at = on_bus.map_or(from + request, |on_bus| on_bus.data_end);
                requested_at + latency + completion + rules.data_phases(1)
            }
            ReadRule::Delayed { latency, .. } if place == 0 => {
                let first_at = on_bus.map_or(from, |on_bus| on_bus.start);
                let data_at = self.devices[master].data_at.unwrap_or(first_at + latency);
                from.max(data_at) + completion + rules.data_phases(left)
            }
            ReadRule::Delayed { .. } | ReadRule::Waits(_) => {
                from + completion + rules.data_phases(left)
            }
        }
    }

    /// Returns the earliest completion of a reported processor access that is not completely on the bus; [`Time::NEVER`] if there is none.
    fn access_done(&self, free_at: Time) -> Time {
        let mut on_bus = self.bytes_on_bus(self.devices.len());
        for access in &self.bridge.accesses {
            let on_bus = on_bus.take();
            let whole = on_bus == Some(access.left_bytes());
            if access.transfer.reported && !whole {
                let left = access.left_bytes() - on_bus.unwrap_or(0);
                return free_at + self.rules.access_time(left);
            }
        }
        Time::NEVER
    }

    /// Returns the earliest completion of a reported split read whose last data are on their way; [`Time::NEVER`] if there is none.
    fn completion_done(&self, free_at: Time) -> Time {
        let on_bus = self
            .transaction
            .as_ref()
            .filter(|on_bus| on_bus.kind == Kind::SplitCompletion)
            .map(|on_bus| on_bus.bytes);
        // The transaction on the bus carries data only for the first completion. Returns the bytes that remain of each.
        let left_of = |place: usize, data: &Completion| match on_bus {
            Some(on_bus) if place == 0 => (data.bytes > on_bus).then(|| data.bytes - on_bus),
            _ => Some(data.bytes),
        };
        let completions = self.bridge.completions.iter().enumerate();
        completions
            .filter(|(_, data)| data.last && data.reported)
            .find_map(|(place, data)| Some((data, left_of(place, data)?)))
            .map_or(Time::NEVER, |(data, left)| {
                let time = self.rules.time_alone(self.rules.completion(), left);
                free_at.max(data.ready_at) + time
            })
    }
}

//! Effects of a completed transaction on the transfers.

use baton_wire::{Span, Time};

use super::SharedBus;
use crate::interconnect::Transfer;
use crate::interconnect::pci::master::Completion;
use crate::interconnect::pci::queued::Queued;
use crate::interconnect::pci::rules::{ReadRule, Rules};
use crate::interconnect::pci::transaction::{Kind, Transaction};

impl SharedBus {
    /// Executes the transaction on the bus.
    pub(super) fn finish(&mut self, on_bus: &Transaction) {
        self.transaction = None;
        let end = on_bus.data_end + self.rules.idle;
        self.free_at = end;
        match on_bus.kind {
            Kind::Data => self.finish_data(on_bus, end),
            Kind::Retry => self.finish_retry(on_bus, end),
            Kind::SplitRequest => self.finish_request(on_bus, end),
            Kind::SplitCompletion => self.finish_completion(on_bus, end),
        }
        let wants = match self.devices.get(on_bus.master) {
            Some(device) => device.wants(&self.rules),
            None => self.bridge.wants(),
        };
        self.arbiter.request(on_bus.master, wants);
    }

    /// Records that data of a master's first transfer was moved.
    fn finish_data(&mut self, on_bus: &Transaction, end: Time) {
        let Some(device) = self.devices.get_mut(on_bus.master) else {
            return self.finish_access(on_bus, end);
        };
        let Some(first) = device.queue.front_mut() else {
            return;
        };
        let (meter, from) = (&mut self.meter, on_bus.from);
        if on_bus.bytes < first.job.left_bytes() {
            let moved = first.take(on_bus.bytes, &self.rules);
            meter.moved(on_bus.device, &moved, from, end);
            let next_data_at = end + next_latency(&self.rules);
            device.data_at = device.data_at.map(|_| next_data_at);
            return;
        }
        let transfer = &first.job.transfer;
        meter.moved(on_bus.device, &transfer.bytes, from, end);
        meter.done(on_bus.device, transfer.operation, first.transfers);
        let at = on_bus.data_end + self.rules.after_data(transfer.operation);
        self.done.push(transfer, at);
        device.advance();
    }

    /// Records that the processor has accessed a register, or a word of it.
    fn finish_access(&mut self, on_bus: &Transaction, end: Time) {
        let Some(access) = self.bridge.accesses.front_mut() else {
            return;
        };
        let (meter, from) = (&mut self.meter, on_bus.from);
        if on_bus.bytes < access.left_bytes() {
            let moved = access.take(on_bus.bytes);
            meter.moved(on_bus.device, &moved, from, end);
            return;
        }
        let transfer = &access.transfer;
        meter.moved(on_bus.device, &transfer.bytes, from, end);
        meter.done(on_bus.device, transfer.operation, 1);
        self.done.push(transfer, on_bus.data_end);
        self.bridge.accesses.pop_front();
    }

    fn finish_retry(&mut self, on_bus: &Transaction, end: Time) {
        self.meter.occupied(on_bus.device, on_bus.from, end);
        if let ReadRule::Delayed {
            interval, latency, ..
        } = self.rules.read
        {
            let device = &mut self.devices[on_bus.master];
            device.eligible_at = end + interval;
            device.data_at.get_or_insert(on_bus.start + latency);
        }
    }

    fn finish_request(&mut self, on_bus: &Transaction, end: Time) {
        self.meter.occupied(on_bus.device, on_bus.from, end);
        let ReadRule::Split { latency, .. } = self.rules.read else {
            return;
        };
        let device = &mut self.devices[on_bus.master];
        let Some(Queued { job, started, .. }) = device.queue.front_mut() else {
            return;
        };
        if !*started {
            device.splits.push_back(job.clone());
        }
        *started = true;
        device.requested += on_bus.bytes;
        device.under_way += 1;
        let last = device.requested == job.left_bytes();
        let reported = job.transfer.reported;
        if last {
            device.advance();
        }
        self.bridge.completions.push_back(Completion {
            device: on_bus.device,
            ready_at: on_bus.data_end + latency,
            bytes: on_bus.bytes,
            last,
            reported,
        });
        let bridge = self.devices.len();
        self.arbiter.request(bridge, self.bridge.wants());
    }

    fn finish_completion(&mut self, on_bus: &Transaction, end: Time) {
        let device = &mut self.devices[on_bus.device.index()];
        let (Some(data), Some(job)) = (
            self.bridge.completions.front_mut(),
            device.splits.front_mut(),
        ) else {
            return;
        };
        let moved = job.take(on_bus.bytes);
        data.bytes -= on_bus.bytes;
        let (over, last) = (data.bytes == 0, data.last);
        self.meter.moved(on_bus.device, &moved, on_bus.from, end);
        if !over {
            return;
        }
        device.under_way -= 1;
        let job = last.then(|| device.splits.pop_front()).flatten();
        // The device may request more.
        let wants = device.wants(&self.rules);
        self.arbiter.request(on_bus.device.index(), wants);
        self.bridge.completions.pop_front();
        if let Some(job) = job {
            self.complete(&job.transfer, on_bus.data_end);
        }
    }

    /// Records that `transfer` completes at `at`.
    pub(super) fn complete(&mut self, transfer: &Transfer, at: Time) {
        self.meter.done(transfer.device, transfer.operation, 1);
        self.done.push(transfer, at);
    }
}

fn next_latency(rules: &Rules) -> Span {
    match rules.read {
        ReadRule::Delayed { next_latency, .. } => next_latency,
        ReadRule::Waits(_) | ReadRule::Split { .. } => Span::ZERO,
    }
}

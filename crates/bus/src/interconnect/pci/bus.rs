//! Executes one transaction at a time: queues requests, grants the bus in turn, and executes them.

mod bound;
mod finish;

use baton_wire::Time;

use super::arbiter::{Arbiter, Turn};
use super::config::{PciConfig, PciXConfig};
use super::master::{Bridge, Device};
use super::queued::Queued;
use super::rules::{ReadRule, Rules};
use super::transaction::{Kind, Transaction};
use crate::interconnect::done::DoneQueue;
use crate::interconnect::job::Job;
use crate::interconnect::usage::Meter;
use crate::interconnect::{DeviceId, Done, Interconnect, Operation, Piece, Transfer, Usage, Way};

/// A PCI or PCI-X bus.
#[derive(Clone, Debug)]
pub struct SharedBus {
    rules: Rules,
    devices: Box<[Device]>,
    bridge: Bridge,
    arbiter: Arbiter,
    free_at: Time,
    transaction: Option<Transaction>,
    done: DoneQueue,
    meter: Meter,
}

impl SharedBus {
    /// Creates a conventional bus with this number of devices. The configuration must be valid.
    pub fn pci(config: &PciConfig, devices: usize) -> Self {
        Self::new(Rules::pci(config), devices)
    }

    /// Creates a PCI-X bus with this number of devices. The configuration must be valid.
    pub fn pci_x(config: &PciXConfig, devices: usize) -> Self {
        Self::new(Rules::pci_x(config), devices)
    }

    fn new(rules: Rules, devices: usize) -> Self {
        Self {
            rules,
            devices: vec![Device::default(); devices].into(),
            bridge: Bridge::default(),
            arbiter: Arbiter::new(devices + 1),
            free_at: Time::ZERO,
            transaction: None,
            done: DoneQueue::default(),
            meter: Meter::new(devices),
        }
    }

    fn assert_device(&self, device: DeviceId) {
        assert!(
            device.index() < self.devices.len(),
            "{device:?} of {}: no such device",
            self.devices.len()
        );
    }

    /// Queues a transfer that a device makes itself.
    fn queue(&mut self, now: Time, queued: Queued) {
        let master = queued.job.transfer.device.index();
        self.make_room(now, master);
        let before = self.devices[master].queue.back();
        let is_later = before.is_some_and(|before| queued.is_later_than(before, &self.rules));
        let Transfer {
            operation,
            reported,
            ..
        } = queued.job.transfer;
        if reported && !is_later {
            self.expect(queued.time + self.rules.after_data(operation));
        }
        let device = &mut self.devices[master];
        device.queue.push_back(queued);
        if device.queue.len() == 1 {
            self.arbiter.request(master, device.wants(&self.rules));
        }
    }

    /// Queues an access of the processor.
    fn queue_access(&mut self, now: Time, job: Job) {
        let bridge = self.devices.len();
        self.make_room(now, bridge);
        let before = self.bridge.accesses.back();
        let is_later = before.is_some_and(|before| before.transfer.reported);
        if job.transfer.reported && !is_later {
            self.expect(self.rules.access_time(job.left_bytes()));
        }
        self.bridge.accesses.push_back(job);
        let on_bus = self.transaction.as_ref();
        if on_bus.is_none_or(|on_bus| on_bus.master != bridge) {
            self.arbiter.request(bridge, self.bridge.wants());
        }
    }

    /// Handles a new transfer of `master`: another master's transaction on the bus ends earlier, unless it already does so for a third
    /// master.
    fn make_room(&mut self, now: Time, master: usize) {
        let requested_at = self.arbiter.first_request();
        match &self.transaction {
            Some(on_bus) if on_bus.master != master && now < requested_at => self.end_for(now),
            Some(_) => {}
            // The next turn may be earlier than computed.
            None => self.done.changed(),
        }
    }

    /// Ends the transaction on the bus because another master wants it from `request_at` on.
    fn end_for(&mut self, request_at: Time) {
        let Some(on_bus) = &mut self.transaction else {
            return;
        };
        let device = match on_bus.kind {
            Kind::Data => self.devices.get(on_bus.master),
            Kind::SplitCompletion => None,
            Kind::Retry | Kind::SplitRequest => return,
        };
        let run = device.and_then(|device| device.queue.front()?.bursts(&self.rules));
        let ends_earlier = match run {
            Some(bursts) => on_bus.end_run(request_at, bursts, &self.rules),
            None => on_bus.end_burst(request_at, &self.rules),
        };
        if ends_earlier {
            self.done.changed();
        }
    }

    /// Computes everything before `now`. Decisions at `now` itself wait for the next call, so that they do not depend on the order of calls
    /// at the same time.
    #[inline]
    fn advance(&mut self, now: Time) {
        self.done.advance(now);
        let quiet = match &self.transaction {
            Some(on_bus) => on_bus.data_end > now,
            None => self.free_at.max(self.arbiter.first_request()) >= now,
        };
        if !quiet {
            self.carry_out(now);
        }
    }

    /// Executes one transaction after the other.
    #[inline(never)]
    fn carry_out(&mut self, now: Time) {
        loop {
            match self.transaction {
                Some(on_bus) if on_bus.data_end <= now => self.finish(&on_bus),
                Some(_) => return,
                None => {}
            }
            if !self.arbitrate(now) {
                return;
            }
        }
    }

    /// Grants the bus to the next master, if one wants it before `now`.
    fn arbitrate(&mut self, now: Time) -> bool {
        if self.free_at.max(self.arbiter.first_request()) >= now {
            return false;
        }
        let turn = self.arbiter.next_turn(self.free_at, &self.rules);
        let Some(turn) = turn.filter(|turn| turn.decided_at < now) else {
            return false;
        };
        let master = self.arbiter.grant(turn.decided_at);
        let on_bus = self.begin(master, turn);
        self.transaction = Some(on_bus);
        let other = self.arbiter.first_request();
        if other < on_bus.data_end {
            self.end_for(other);
        }
        true
    }

    /// Returns the transaction that `master` makes if no other master wants the bus.
    fn begin(&self, master: usize, turn: Turn) -> Transaction {
        let Turn { from, start, .. } = turn;
        let (device, plan) = match self.devices.get(master) {
            Some(device) => (DeviceId(master as u8), device.plan(start, &self.rules)),
            None => self.bridge.plan(&self.rules),
        };
        Transaction {
            master,
            device,
            kind: plan.kind,
            from,
            start,
            data_at: start + plan.head,
            bytes: plan.bytes,
            data_end: start + plan.time,
        }
    }
}

impl Interconnect for SharedBus {
    fn submit(&mut self, now: Time, transfer: Transfer) {
        self.assert_device(transfer.device);
        self.advance(now);
        match transfer.operation {
            // An interrupt pin needs no transaction.
            Operation::Interrupt => self.complete(&transfer, now),
            Operation::RegisterWrite | Operation::RegisterRead => {
                self.queue_access(now, Job::new(now, transfer));
            }
            Operation::DmaRead | Operation::DmaWrite => {
                self.queue(now, Queued::one(now, transfer, &self.rules));
            }
        }
    }

    fn submit_reads(&mut self, now: Time, device: DeviceId, pieces: &[Piece], tag: u64) {
        self.assert_device(device);
        if !matches!(self.rules.read, ReadRule::Waits(_)) {
            for (place, piece) in (1..).zip(pieces) {
                let last = place == pieces.len();
                self.submit(now, piece.read_by(device, tag, last));
            }
            return;
        }
        self.advance(now);
        self.queue(now, Queued::list(now, (device, tag), pieces, &self.rules));
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.done.next_at(|| self.earliest_done())
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.done.pop()
    }

    fn usage(&self, now: Time) -> Usage {
        let channel = self
            .meter
            .channel(now, 0, Way::Both, |bytes| self.rules.data_time(bytes));
        Usage {
            elapsed: self.meter.elapsed(now),
            channels: vec![channel],
        }
    }

    fn restart_counts(&mut self, now: Time) {
        self.meter.restart(now);
    }
}

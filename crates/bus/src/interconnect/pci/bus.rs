//! A bus with a central arbiter: one transaction at a time, round robin between the masters that want it.

use baton_wire::{Span, Time};

use super::config::{PciConfig, PciXConfig};
use super::master::{Bridge, Completion, Device};
use super::rules::{Phases, ReadRule, Rules};
use crate::interconnect::done::DoneQueue;
use crate::interconnect::job::Job;
use crate::interconnect::usage::Meter;
use crate::interconnect::{DeviceId, Done, Interconnect, Operation, Transfer, Usage, Way};

/// A PCI or PCI-X bus.
#[derive(Clone, Debug)]
pub struct SharedBus {
    rules: Rules,
    devices: Box<[Device]>,
    bridge: Bridge,
    /// Who had the bus last: a device by its number, the bridge after them.
    last_master: usize,
    free_at: Time,
    transaction: Option<Transaction>,
    done: DoneQueue,
    meter: Meter,
}

/// What is on the bus.
#[derive(Clone, Copy, Debug)]
struct Transaction {
    master: usize,
    device: DeviceId,
    kind: Kind,
    /// Since when nobody else could have the bus.
    from: Time,
    /// Its address phase.
    start: Time,
    /// Its first data phase; without one, its end.
    data_at: Time,
    bytes: u64,
    /// When its last data phase ends.
    data_end: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Moves data of the master's first transfer.
    Data,
    /// An attempt that the bridge answers with retry.
    Retry,
    /// Asks for `bytes`, which come later.
    SplitRequest,
    /// Brings them.
    SplitCompletion,
}

impl SharedBus {
    /// A conventional bus with `devices`. The configuration must be valid.
    pub fn pci(config: &PciConfig, devices: usize) -> Self {
        Self::new(Rules::pci(config), devices)
    }

    /// A PCI-X bus with `devices`. The configuration must be valid.
    pub fn pci_x(config: &PciXConfig, devices: usize) -> Self {
        Self::new(Rules::pci_x(config), devices)
    }

    fn new(rules: Rules, devices: usize) -> Self {
        Self {
            rules,
            devices: vec![Device::default(); devices].into(),
            bridge: Bridge::default(),
            last_master: devices,
            free_at: Time::ZERO,
            transaction: None,
            done: DoneQueue::default(),
            meter: Meter::new(devices),
        }
    }

    fn clocks(&self, clocks: u64) -> Span {
        self.rules.clock * clocks
    }

    /// Asks `master` again when it wants the bus.
    fn ask(&mut self, master: usize) {
        match self.devices.get_mut(master) {
            Some(device) => device.ask(&self.rules.read),
            None => self.bridge.ask(),
        }
    }

    fn wants(&self, master: usize) -> Time {
        match self.devices.get(master) {
            Some(device) => device.wants,
            None => self.bridge.wants,
        }
    }

    /// When the first master wants the bus.
    fn first_want(&self) -> Time {
        let devices = self.devices.iter();
        devices.fold(self.bridge.wants, |first, device| first.min(device.wants))
    }

    /// When the first of the masters other than `except` wants the bus.
    fn first_other_want(&self, except: usize) -> Time {
        let others = (0..=self.devices.len()).filter(|&master| master != except);
        others.fold(Time::NEVER, |first, master| first.min(self.wants(master)))
    }

    /// Works out everything before `now`. What is decided at `now` itself waits for the next call, so that it does not
    /// depend on the order of calls at one time.
    fn advance(&mut self, now: Time) {
        self.done.advance(now);
        loop {
            match self.transaction {
                Some(transaction) if transaction.data_end <= now => self.finish(transaction),
                Some(_) => return,
                None => {
                    if !self.arbitrate(now) {
                        return;
                    }
                }
            }
        }
    }

    /// Gives the bus to the next master, if one wants it before `now`.
    fn arbitrate(&mut self, now: Time) -> bool {
        let wanted = self.first_want();
        if self.free_at.max(wanted) >= now {
            return false;
        }
        let at = if wanted <= self.free_at {
            self.free_at
        } else {
            self.rules.edge(wanted)
        };
        if at >= now {
            return false;
        }
        let master = self.next_master(at);
        self.last_master = master;
        let waited = self.clocks(self.rules.arbitration);
        let (from, start) = match (self.rules.hidden_arbitration, wanted >= self.free_at) {
            (true, false) => (at, at),
            // The bus is idle while the arbiter decides: this is no transaction's time.
            (true, true) => (at + waited, at + waited),
            (false, _) => (at, at + waited),
        };
        let mut transaction = self.begin(master, from, start);
        let other = self.first_other_want(master);
        if other < transaction.data_end {
            self.make_room(&mut transaction, other);
        }
        self.transaction = Some(transaction);
        true
    }

    /// The first after the last master, all around, that wants the bus at `at`. One does.
    fn next_master(&self, at: Time) -> usize {
        let wants = |&master: &usize| self.wants(master) <= at;
        let after = self.last_master + 1..=self.devices.len();
        let around = 0..=self.last_master;
        after.chain(around).find(wants).unwrap_or(self.last_master)
    }

    /// The transaction that `master` makes from `start` if nobody else wants the bus.
    fn begin(&self, master: usize, from: Time, start: Time) -> Transaction {
        let rules = &self.rules;
        let (device, kind, head, bytes) = match self.devices.get(master) {
            Some(device) => {
                let (kind, head, bytes) = device_transaction(device, rules, start);
                (DeviceId(master as u8), kind, head, bytes)
            }
            None => self.bridge_transaction(),
        };
        let data_at = start + self.clocks(head);
        let data_end = match kind {
            Kind::Data | Kind::SplitCompletion => data_at + self.clocks(rules.data_clocks(bytes)),
            Kind::Retry | Kind::SplitRequest => data_at,
        };
        Transaction {
            master,
            device,
            kind,
            from,
            start,
            data_at,
            bytes,
            data_end,
        }
    }

    fn bridge_transaction(&self) -> (DeviceId, Kind, u64, u64) {
        if self.bridge.accesses_first() {
            let access = &self.bridge.accesses[0];
            let head = match access.operation {
                Operation::RegisterRead => self.rules.register_read,
                _ => self.rules.register_write,
            };
            return (access.device, Kind::Data, head, access.left_bytes());
        }
        let (data, phases) = (&self.bridge.completions[0], self.completion_phases());
        let bytes = data.bytes.min(phases.burst_bytes.get());
        (data.device, Kind::SplitCompletion, phases.head, bytes)
    }

    fn completion_phases(&self) -> Phases {
        match self.rules.read {
            ReadRule::Split { completion, .. } => completion,
            ReadRule::Waits { first, .. } => first,
            ReadRule::Delayed { hit, .. } => hit,
        }
    }

    /// Shortens a burst because another master wants the bus from `request_at` on: the latency timer's rule.
    fn make_room(&self, transaction: &mut Transaction, request_at: Time) {
        if !matches!(transaction.kind, Kind::Data | Kind::SplitCompletion) {
            return;
        }
        let rules = &self.rules;
        let expires = transaction.start + self.clocks(rules.latency_timer);
        let seen = rules.edge(request_at.max(transaction.data_at)) + rules.clock;
        let limit = expires.max(seen);
        if limit >= transaction.data_end {
            return;
        }
        let clocks = (limit - transaction.data_at).as_ps() / rules.clock.as_ps();
        let words = (clocks / rules.per_word).max(1);
        let bytes = (words * rules.width.get()).next_multiple_of(rules.cut_bytes);
        if bytes < transaction.bytes {
            transaction.bytes = bytes;
            transaction.data_end =
                transaction.data_at + self.clocks(rules.data_clocks(transaction.bytes));
        }
    }

    /// Carries out the transaction on the bus.
    fn finish(&mut self, transaction: Transaction) {
        self.transaction = None;
        let end = transaction.data_end + self.clocks(self.rules.idle);
        self.free_at = end;
        match transaction.kind {
            Kind::Data => self.finish_data(&transaction, end),
            Kind::Retry => self.finish_retry(&transaction, end),
            Kind::SplitRequest => self.finish_request(&transaction, end),
            Kind::SplitCompletion => self.finish_completion(&transaction, end),
        }
        self.ask(transaction.master);
        // The other side of a split read: the bridge has data to bring, the device may ask again.
        match transaction.kind {
            Kind::SplitRequest => self.ask(self.devices.len()),
            Kind::SplitCompletion => self.ask(transaction.device.index()),
            Kind::Data | Kind::Retry => {}
        }
    }

    fn finish_data(&mut self, transaction: &Transaction, end: Time) {
        let next_data_at = end + self.next_latency();
        let job = match self.devices.get_mut(transaction.master) {
            Some(device) => {
                device.started = true;
                device.data_at = device.data_at.map(|_| next_data_at);
                device.queue.front_mut()
            }
            None => self.bridge.accesses.front_mut(),
        };
        let Some(job) = job else { return };
        let moved = job.take(transaction.bytes);
        let over = job.left_bytes() == 0;
        self.meter
            .moved(transaction.device, &moved, transaction.from, end);
        if over {
            let job = match self.devices.get_mut(transaction.master) {
                Some(device) => device.advance(),
                None => self.bridge.accesses.pop_front(),
            };
            if let Some(job) = job {
                let at = self.done_at(job.operation, transaction.data_end);
                self.complete(&job, at);
            }
        }
    }

    fn finish_retry(&mut self, transaction: &Transaction, end: Time) {
        self.meter
            .occupied(transaction.device, transaction.from, end);
        if let ReadRule::Delayed {
            interval, latency, ..
        } = self.rules.read
        {
            let eligible_at = end + self.clocks(interval);
            let data_at = transaction.start + self.clocks(latency);
            let device = &mut self.devices[transaction.master];
            device.eligible_at = eligible_at;
            device.data_at.get_or_insert(data_at);
        }
    }

    fn finish_request(&mut self, transaction: &Transaction, end: Time) {
        self.meter
            .occupied(transaction.device, transaction.from, end);
        let ReadRule::Split { latency, .. } = self.rules.read else {
            return;
        };
        let device = &mut self.devices[transaction.master];
        let Some(job) = device.queue.front() else {
            return;
        };
        if !device.started {
            device.splits.push_back(job.clone());
        }
        device.started = true;
        device.requested += transaction.bytes;
        device.under_way += 1;
        let last = device.requested == job.left_bytes();
        let reported = job.reported;
        if last {
            device.advance();
        }
        self.bridge.completions.push_back(Completion {
            device: transaction.device,
            ready_at: transaction.data_end + latency,
            bytes: transaction.bytes,
            last,
            reported,
        });
    }

    fn finish_completion(&mut self, transaction: &Transaction, end: Time) {
        let device = &mut self.devices[transaction.device.index()];
        let (Some(data), Some(job)) = (
            self.bridge.completions.front_mut(),
            device.splits.front_mut(),
        ) else {
            return;
        };
        let moved = job.take(transaction.bytes);
        data.bytes -= transaction.bytes;
        let (over, last) = (data.bytes == 0, data.last);
        self.meter
            .moved(transaction.device, &moved, transaction.from, end);
        if !over {
            return;
        }
        device.under_way -= 1;
        let job = last.then(|| device.splits.pop_front()).flatten();
        self.bridge.completions.pop_front();
        if let Some(job) = job {
            self.complete(&job, transaction.data_end);
        }
    }

    /// When a transfer is done whose last data phase ends at `data_end`.
    fn done_at(&self, operation: Operation, data_end: Time) -> Time {
        match operation {
            Operation::DmaWrite => data_end + self.rules.posted_write,
            _ => data_end,
        }
    }

    fn complete(&mut self, job: &Job, at: Time) {
        self.meter.done(job.device, job.operation);
        self.done.push(&job.left(), at);
    }

    fn next_latency(&self) -> Span {
        match self.rules.read {
            ReadRule::Delayed { next_latency, .. } => self.clocks(next_latency),
            ReadRule::Waits { .. } | ReadRule::Split { .. } => Span::ZERO,
        }
    }
}

/// What a device does next: the kind of transaction, clocks before its data, bytes.
fn device_transaction(device: &Device, rules: &Rules, start: Time) -> (Kind, u64, u64) {
    let job = &device.queue[0];
    let left = job.left_bytes();
    let data = |phases: Phases| (Kind::Data, phases.head, left.min(phases.burst_bytes.get()));
    if job.operation != Operation::DmaRead {
        return data(rules.write);
    }
    match rules.read {
        ReadRule::Waits { first, next } => data(if device.started { next } else { first }),
        ReadRule::Delayed { attempt, hit, .. } => match device.data_at {
            Some(data_at) if data_at <= start => data(hit),
            _ => (Kind::Retry, attempt, 0),
        },
        ReadRule::Split {
            request,
            request_bytes,
            ..
        } => {
            let bytes = (left - device.requested).min(request_bytes);
            (Kind::SplitRequest, request, bytes)
        }
    }
}

/// The earliest times at which transfers can be done.
impl SharedBus {
    /// No transfer that is not done yet is done before.
    fn earliest_done(&self) -> Option<Time> {
        // What is not decided by now is decided later.
        let undecided = self.free_at.max(self.done.now());
        let free_at = self.transaction.map_or(undecided, |transaction| {
            transaction.data_end + self.clocks(self.rules.idle)
        });
        let current = self
            .transaction
            .and_then(|transaction| self.current_done(&transaction));
        (0..self.devices.len())
            .filter_map(|master| self.device_done(master, free_at))
            .chain(self.access_done(free_at))
            .chain(self.completion_done(free_at))
            .chain(current)
            .min()
    }

    /// When the transfer on the bus is done, if it is by this transaction.
    fn current_done(&self, transaction: &Transaction) -> Option<Time> {
        let job = match transaction.kind {
            Kind::Data => self.head(transaction.master)?,
            Kind::SplitCompletion => self.devices[transaction.device.index()].splits.front()?,
            Kind::Retry | Kind::SplitRequest => return None,
        };
        (job.reported && job.left_bytes() == transaction.bytes)
            .then(|| self.done_at(job.operation, transaction.data_end))
    }

    fn head(&self, master: usize) -> Option<&Job> {
        match self.devices.get(master) {
            Some(device) => device.queue.front(),
            None => self.bridge.accesses.front(),
        }
    }

    /// The place of the first of a device's transfers that the transaction on the bus does not finish, the bytes that it leaves, and
    /// whether it has been begun.
    fn next_job(&self, master: usize) -> Option<(usize, u64, bool)> {
        let device = &self.devices[master];
        let job = device.queue.front()?;
        match self.transaction {
            Some(on_bus) if on_bus.master == master && on_bus.kind == Kind::Data => {
                if job.left_bytes() > on_bus.bytes {
                    return Some((0, job.left_bytes() - on_bus.bytes, true));
                }
                let next = device.queue.get(1)?;
                Some((1, next.left_bytes(), false))
            }
            _ => Some((0, job.left_bytes(), device.started)),
        }
    }

    /// When the first of a device's transfers that are reported can be done. It need not be the first in the queue: a split read waits
    /// for its data, a posted write for memory, while others go on.
    fn device_done(&self, master: usize, free_at: Time) -> Option<Time> {
        let (first, mut left, mut started) = self.next_job(master)?;
        let (mut from, mut best) = (free_at, Time::NEVER);
        let queue = &self.devices[master].queue;
        for (place, job) in queue.iter().enumerate().skip(first) {
            if place > first {
                (left, started) = (job.left_bytes(), false);
            }
            from = from.max(job.arrival);
            if from >= best {
                break;
            }
            let data_end = self.alone(master, place, from, left, started);
            if job.reported {
                best = best.min(self.done_at(job.operation, data_end));
            }
            if !self.is_split(job) {
                from = data_end + self.clocks(self.rules.idle);
            }
        }
        (best < Time::NEVER).then_some(best)
    }

    /// Whether it is a read that leaves the bus to others while it waits for its data.
    fn is_split(&self, job: &Job) -> bool {
        job.operation == Operation::DmaRead && matches!(self.rules.read, ReadRule::Split { .. })
    }

    /// When the data end of the transfer at `place` of a device's queue, of which `left` bytes are left, if it gets the bus at `from`
    /// and no other wants it.
    fn alone(&self, master: usize, place: usize, from: Time, left: u64, started: bool) -> Time {
        let rules = &self.rules;
        let device = &self.devices[master];
        if device.queue[place].operation != Operation::DmaRead {
            return from + self.clocks(rules.clocks_alone(rules.write, left));
        }
        let on_bus = self.transaction.filter(|on_bus| on_bus.master == master);
        match rules.read {
            ReadRule::Waits { first, next } => {
                let more = first.head.saturating_sub(next.head) * u64::from(!started);
                from + self.clocks(rules.clocks_alone(next, left) + more)
            }
            ReadRule::Delayed { latency, hit, .. } => {
                let first_at = on_bus.map_or(from, |on_bus| on_bus.start);
                let data_at = device.data_at.unwrap_or(first_at + self.clocks(latency));
                let data_at = if place == 0 { data_at } else { from };
                from.max(data_at) + self.clocks(hit.head + rules.data_clocks(left))
            }
            ReadRule::Split {
                request,
                latency,
                completion,
                ..
            } => {
                let requested_at = match on_bus {
                    Some(on_bus) => on_bus.data_end,
                    None => from + self.clocks(request),
                };
                requested_at + latency + self.clocks(completion.head + rules.data_clocks(1))
            }
        }
    }

    fn access_done(&self, free_at: Time) -> Option<Time> {
        let on_bus = self.transaction.is_some_and(|transaction| {
            transaction.master == self.devices.len() && transaction.kind == Kind::Data
        });
        let mut waiting = self.bridge.accesses.iter().skip(usize::from(on_bus));
        let job = waiting.find(|job| job.reported)?;
        let head = self.rules.register_write.min(self.rules.register_read);
        let clocks = head + self.rules.data_clocks(job.left_bytes());
        Some(free_at.max(job.arrival) + self.clocks(clocks))
    }

    /// When the first split read that is reported can be done whose last data are on their way.
    fn completion_done(&self, free_at: Time) -> Option<Time> {
        let on_bus = self
            .transaction
            .filter(|transaction| transaction.kind == Kind::SplitCompletion)
            .map(|transaction| transaction.bytes);
        // What the transaction on the bus leaves of the first; of the others it brings nothing.
        let left_of = |place: usize, data: &Completion| match on_bus {
            Some(on_bus) if place == 0 => (data.bytes > on_bus).then(|| data.bytes - on_bus),
            _ => Some(data.bytes),
        };
        let completions = self.bridge.completions.iter().enumerate();
        let (data, left) = completions
            .filter(|(_, data)| data.last && data.reported)
            .find_map(|(place, data)| Some((data, left_of(place, data)?)))?;
        let clocks = self.rules.clocks_alone(self.completion_phases(), left);
        Some(free_at.max(data.ready_at) + self.clocks(clocks))
    }
}

impl Interconnect for SharedBus {
    fn submit(&mut self, now: Time, transfer: Transfer) {
        assert!(
            transfer.device.index() < self.devices.len(),
            "{:?} of {}: no such device",
            transfer.device,
            self.devices.len()
        );
        self.advance(now);
        let job = Job::new(now, &transfer);
        if transfer.operation == Operation::Interrupt {
            // A pin: no transaction.
            self.complete(&job, now);
            return;
        }
        let master = if transfer.operation.is_register_access() {
            self.devices.len()
        } else {
            transfer.device.index()
        };
        let queue = match self.devices.get_mut(master) {
            Some(device) => &mut device.queue,
            None => &mut self.bridge.accesses,
        };
        queue.push_back(job);
        self.ask(master);
        let mut earlier = transfer.reported;
        if let Some(mut transaction) = self.transaction
            && transaction.master != master
        {
            let before = transaction.data_end;
            self.make_room(&mut transaction, now);
            earlier |= transaction.data_end < before;
            self.transaction = Some(transaction);
        }
        if earlier {
            self.done.changed();
        }
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

//! A bus with a central arbiter: one transaction at a time, round robin between the masters that want it.

use baton_wire::{Span, Time};

use super::config::{PciConfig, PciXConfig};
use super::master::{Bridge, Completion, Device};
use super::queued::{Burst, Queued};
use super::rules::{Phases, ReadRule, Rules};
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
    /// Who had the bus last: a device by its number, the bridge after them.
    last_master: usize,
    free_at: Time,
    transaction: Option<Transaction>,
    done: DoneQueue,
    meter: Meter,
}

/// What is on the bus: a transaction, or a run of bursts that a master makes one after the other while no other wants the bus.
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
    /// Bytes of all bursts.
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

    fn assert_device(&self, device: DeviceId) {
        assert!(
            device.index() < self.devices.len(),
            "{device:?} of {}: no such device",
            self.devices.len()
        );
    }

    /// Queues what a device does itself.
    fn queue(&mut self, now: Time, queued: Queued) {
        let master = queued.job.device.index();
        let (reported, clocks) = (queued.job.reported, queued.clocks);
        let device = &mut self.devices[master];
        device.queue.push_back(queued);
        if device.queue.len() == 1 {
            device.ask(&self.rules.read);
        }
        self.joined(master, now, reported.then_some(clocks));
    }

    /// Queues what the processor does.
    fn queue_access(&mut self, now: Time, job: Job) {
        let master = self.devices.len();
        let clocks = self.rules.access_clocks(job.left_bytes());
        let reported = job.reported;
        self.bridge.accesses.push_back(job);
        self.bridge.ask();
        self.joined(master, now, reported.then_some(clocks));
    }

    /// `master` has one more transfer. It needs the bus for so many `clocks` at least, or 0 if that is not known; none if nobody
    /// waits for it.
    fn joined(&mut self, master: usize, now: Time, clocks: Option<u64>) {
        let mut earlier = false;
        if let Some(mut transaction) = self.transaction
            && transaction.master != master
        {
            earlier = self.make_room(&mut transaction, now);
            self.transaction = Some(transaction);
        }
        match clocks {
            _ if earlier => self.done.changed(),
            Some(0) => self.done.changed(),
            Some(clocks) => self.done.expect(self.next_free_at() + self.clocks(clocks)),
            None => {}
        }
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

    /// What `master` does from `start` if nobody else wants the bus.
    fn begin(&self, master: usize, from: Time, start: Time) -> Transaction {
        let rules = &self.rules;
        let (device, begun) = match self.devices.get(master) {
            Some(device) => (
                DeviceId(master as u8),
                device_transaction(device, rules, start),
            ),
            None => self.bridge_transaction(),
        };
        Transaction {
            master,
            device,
            kind: begun.kind,
            from,
            start,
            data_at: start + self.clocks(begun.head),
            bytes: begun.bytes,
            data_end: start + self.clocks(begun.clocks),
        }
    }

    fn bridge_transaction(&self) -> (DeviceId, Begun) {
        if self.bridge.accesses_first() {
            let access = &self.bridge.accesses[0];
            let head = match access.operation {
                Operation::RegisterRead => self.rules.register_read,
                _ => self.rules.register_write,
            };
            let begun = Begun::burst(Kind::Data, head, access.left_bytes(), &self.rules);
            return (access.device, begun);
        }
        let (data, phases) = (&self.bridge.completions[0], self.completion_phases());
        let bytes = data.bytes.min(phases.burst_bytes.get());
        let begun = Begun::burst(Kind::SplitCompletion, phases.head, bytes, &self.rules);
        (data.device, begun)
    }

    fn completion_phases(&self) -> Phases {
        match self.rules.read {
            ReadRule::Split { completion, .. } => completion,
            ReadRule::Waits { first, .. } => first,
            ReadRule::Delayed { hit, .. } => hit,
        }
    }

    /// Ends a run of bursts because another master wants the bus from `request_at` on. Whether it ends earlier.
    fn make_room(&self, transaction: &mut Transaction, request_at: Time) -> bool {
        if !matches!(transaction.kind, Kind::Data | Kind::SplitCompletion) {
            return false;
        }
        let rules = &self.rules;
        let (mut start, mut data_at) = (transaction.start, transaction.data_at);
        let (mut before, mut bytes) = (0, transaction.bytes);
        // The burst in which the arbiter sees the request: after it the other master's turn comes.
        for burst in self.run_on_bus(transaction) {
            data_at = start + self.clocks(burst.head);
            bytes = burst.bytes.min(transaction.bytes - before);
            let data_end = data_at + self.clocks(rules.data_clocks(bytes));
            let over = before + bytes == transaction.bytes;
            if over || request_at <= data_end + self.clocks(rules.idle) {
                break;
            }
            before += bytes;
            start = data_end + self.clocks(rules.between_bursts());
        }
        let bytes = self.shortened(bytes, (start, data_at), request_at);
        if before + bytes == transaction.bytes {
            return false;
        }
        transaction.bytes = before + bytes;
        transaction.data_end = data_at + self.clocks(rules.data_clocks(bytes));
        true
    }

    /// The bursts of a device's run; none for what is a single burst.
    fn run_on_bus(&self, transaction: &Transaction) -> impl Iterator<Item = Burst> {
        let device = self.devices.get(transaction.master);
        let run = device
            .filter(|_| transaction.kind == Kind::Data)
            .and_then(|device| {
                let queued = device.queue.front()?;
                Some(queued.run(&self.rules, device.started))
            });
        run.into_iter().flatten()
    }

    /// Bytes that are left of a burst of `bytes` because another master wants the bus from `request_at` on: the latency timer's rule.
    fn shortened(&self, bytes: u64, (start, data_at): (Time, Time), request_at: Time) -> u64 {
        let rules = &self.rules;
        let expires = start + self.clocks(rules.latency_timer);
        let seen = rules.edge(request_at.max(data_at)) + rules.clock;
        let limit = expires.max(seen);
        if limit >= data_at + self.clocks(rules.data_clocks(bytes)) {
            return bytes;
        }
        let clocks = (limit - data_at).as_ps() / rules.clock.as_ps();
        let words = (clocks / rules.per_word).max(1);
        let limit = (words * rules.width.get()).next_multiple_of(rules.cut_bytes);
        bytes.min(limit)
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
                device.data_at = device.data_at.map(|_| next_data_at);
                device.queue.front_mut().map(|queued| &mut queued.job)
            }
            None => self.bridge.accesses.front_mut(),
        };
        let Some(job) = job else { return };
        let moved = job.take(transaction.bytes);
        let over = job.left_bytes() == 0;
        self.meter
            .moved(transaction.device, &moved, transaction.from, end);
        if over {
            let at = done_at(&self.rules, job.operation, transaction.data_end);
            self.finish_transfer(transaction.master, at);
        } else if let Some(device) = self.devices.get_mut(transaction.master)
            && let Some(queued) = device.queue.front_mut()
        {
            device.started = queued.moved(transaction.bytes, device.started, &self.rules);
        }
    }

    /// The first transfer of `master` is done at `at`.
    fn finish_transfer(&mut self, master: usize, at: Time) {
        let Some(device) = self.devices.get_mut(master) else {
            if let Some(job) = self.bridge.accesses.pop_front() {
                self.complete(&job, at);
            }
            return;
        };
        if let Some(Queued { job, transfers, .. }) = device.advance() {
            self.meter.reads_done(job.device, transfers - 1);
            self.complete(&job, at);
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
        let Some(Queued { job, .. }) = device.queue.front() else {
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

/// When a transfer is done whose last data phase ends at `data_end`.
fn done_at(rules: &Rules, operation: Operation, data_end: Time) -> Time {
    match operation {
        Operation::DmaWrite => data_end + rules.posted_write,
        _ => data_end,
    }
}

/// What begins on the bus.
#[derive(Clone, Copy, Debug)]
struct Begun {
    kind: Kind,
    /// Clocks before the first data phase.
    head: u64,
    bytes: u64,
    /// Clocks to the end of the last data phase.
    clocks: u64,
}

impl Begun {
    fn burst(kind: Kind, head: u64, bytes: u64, rules: &Rules) -> Self {
        let clocks = head + rules.data_clocks(bytes);
        Self {
            kind,
            head,
            bytes,
            clocks,
        }
    }

    /// A transaction without data that asks for `bytes`.
    fn without_data(kind: Kind, clocks: u64, bytes: u64) -> Self {
        Self {
            kind,
            head: clocks,
            bytes,
            clocks,
        }
    }
}

/// What a device does next.
fn device_transaction(device: &Device, rules: &Rules, start: Time) -> Begun {
    let queued = &device.queue[0];
    let left = queued.job.left_bytes();
    let run = |first: Phases| Begun {
        kind: Kind::Data,
        head: first.head,
        bytes: left,
        clocks: queued.clocks,
    };
    if queued.job.operation != Operation::DmaRead {
        return run(rules.write);
    }
    match rules.read {
        ReadRule::Waits { first, next } => run(if device.started { next } else { first }),
        ReadRule::Delayed { attempt, hit, .. } => match device.data_at {
            Some(data_at) if data_at <= start => {
                let bytes = left.min(hit.burst_bytes.get());
                Begun::burst(Kind::Data, hit.head, bytes, rules)
            }
            _ => Begun::without_data(Kind::Retry, attempt, 0),
        },
        ReadRule::Split {
            request,
            request_bytes,
            ..
        } => {
            let bytes = (left - device.requested).min(request_bytes);
            Begun::without_data(Kind::SplitRequest, request, bytes)
        }
    }
}

/// The earliest times at which transfers can be done.
impl SharedBus {
    /// No transfer that is not done yet is done before.
    fn earliest_done(&self) -> Option<Time> {
        let free_at = self.next_free_at();
        let current = self
            .transaction
            .and_then(|transaction| self.current_done(&transaction));
        // Others need the bus.
        let mut first = current.unwrap_or(Time::NEVER);
        if first > free_at {
            for master in 0..self.devices.len() {
                first = first.min(self.device_done(master, free_at));
            }
            if let Some(done) = self.access_done(free_at) {
                first = first.min(done);
            }
            if let Some(done) = self.completion_done(free_at) {
                first = first.min(done);
            }
        }
        (first < Time::NEVER).then_some(first)
    }

    /// When the bus is free for what is not on it yet. What is not decided by now is decided later.
    fn next_free_at(&self) -> Time {
        match &self.transaction {
            Some(transaction) => transaction.data_end + self.clocks(self.rules.idle),
            None => self.free_at.max(self.done.now()),
        }
    }

    /// When the transfer on the bus is done, if it is by this transaction.
    fn current_done(&self, transaction: &Transaction) -> Option<Time> {
        let job = match transaction.kind {
            Kind::Data => self.head(transaction.master)?,
            Kind::SplitCompletion => self.devices[transaction.device.index()].splits.front()?,
            Kind::Retry | Kind::SplitRequest => return None,
        };
        (job.reported && job.left_bytes() == transaction.bytes)
            .then(|| done_at(&self.rules, job.operation, transaction.data_end))
    }

    fn head(&self, master: usize) -> Option<&Job> {
        match self.devices.get(master) {
            Some(device) => device.queue.front().map(|queued| &queued.job),
            None => self.bridge.accesses.front(),
        }
    }

    /// When the first of a device's transfers that are reported can be done. It need not be the first in the queue: a split read waits
    /// for its data, a posted write for memory, while others go on. [`Time::NEVER`] if none is reported.
    fn device_done(&self, master: usize, free_at: Time) -> Time {
        let device = &self.devices[master];
        let on_bus = self
            .transaction
            .filter(|on_bus| on_bus.master == master && on_bus.kind == Kind::Data)
            .map_or(0, |on_bus| on_bus.bytes);
        let (mut from, mut best) = (free_at, Time::NEVER);
        // By place: the first one or two are enough nearly always.
        for place in 0..device.queue.len() {
            let queued = &device.queue[place];
            let job = &queued.job;
            let first = place == 0;
            // What the bus carries is not left.
            if first && on_bus > 0 && job.left_bytes() == on_bus {
                continue;
            }
            from = from.max(job.arrival);
            if from >= best {
                break;
            }
            let data_end = if first && on_bus > 0 {
                self.rest_alone(master, from, job.left_bytes() - on_bus)
            } else {
                self.alone(master, place, from)
            };
            if job.reported {
                best = best.min(done_at(&self.rules, job.operation, data_end));
            }
            if !self.is_split(job) {
                from = data_end + self.clocks(self.rules.idle);
            }
        }
        best
    }

    /// Whether it is a read that leaves the bus to others while it waits for its data.
    fn is_split(&self, job: &Job) -> bool {
        job.operation == Operation::DmaRead && matches!(self.rules.read, ReadRule::Split { .. })
    }

    /// When the data end of the first transfer of a device's queue of which the bus leaves `left` bytes: not before.
    fn rest_alone(&self, master: usize, from: Time, left: u64) -> Time {
        let rules = &self.rules;
        let job = &self.devices[master].queue[0].job;
        let phases = match rules.read {
            _ if job.operation != Operation::DmaRead => rules.write,
            ReadRule::Waits { next, .. } => next,
            ReadRule::Delayed { .. } | ReadRule::Split { .. } => {
                return self.alone_in_parts(master, 0, from, left);
            }
        };
        from + self.clocks(rules.clocks_alone(phases, left))
    }

    /// When the data end of the transfer at `place` of a device's queue if it gets the bus at `from` and no other wants it.
    fn alone(&self, master: usize, place: usize, from: Time) -> Time {
        let queued = &self.devices[master].queue[place];
        let in_parts = queued.job.operation == Operation::DmaRead
            && !matches!(self.rules.read, ReadRule::Waits { .. });
        if in_parts {
            self.alone_in_parts(master, place, from, queued.job.left_bytes())
        } else {
            from + self.clocks(queued.clocks)
        }
    }

    /// The same for a read that leaves the bus to others, with `left` bytes to go.
    fn alone_in_parts(&self, master: usize, place: usize, from: Time, left: u64) -> Time {
        let rules = &self.rules;
        let device = &self.devices[master];
        let on_bus = self.transaction.filter(|on_bus| on_bus.master == master);
        match rules.read {
            ReadRule::Waits { next, .. } => from + self.clocks(rules.clocks_alone(next, left)),
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
        if self.bridge.accesses.is_empty() {
            return None;
        }
        let on_bus = self.transaction.is_some_and(|transaction| {
            transaction.master == self.devices.len() && transaction.kind == Kind::Data
        });
        let mut waiting = self.bridge.accesses.iter().skip(usize::from(on_bus));
        let job = waiting.find(|job| job.reported)?;
        let clocks = self.rules.access_clocks(job.left_bytes());
        Some(free_at.max(job.arrival) + self.clocks(clocks))
    }

    /// When the first split read that is reported can be done whose last data are on their way.
    fn completion_done(&self, free_at: Time) -> Option<Time> {
        if self.bridge.completions.is_empty() {
            return None;
        }
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
        self.assert_device(transfer.device);
        self.advance(now);
        let job = Job::new(now, &transfer);
        match transfer.operation {
            // A pin: no transaction.
            Operation::Interrupt => self.complete(&job, now),
            Operation::RegisterWrite | Operation::RegisterRead => self.queue_access(now, job),
            Operation::DmaRead | Operation::DmaWrite => {
                let bytes = std::iter::once(job.left_bytes());
                let queued = Queued::new(job, bytes, &self.rules);
                self.queue(now, queued);
            }
        }
    }

    fn submit_reads(&mut self, now: Time, device: DeviceId, pieces: &[Piece], tag: u64) {
        self.assert_device(device);
        if !matches!(self.rules.read, ReadRule::Waits { .. }) {
            for (place, piece) in (1..).zip(pieces) {
                let last = place == pieces.len();
                self.submit(now, piece.read_by(device, tag, last));
            }
            return;
        }
        self.advance(now);
        let job = Job::new(now, &Piece::read_all(pieces, device, tag));
        let bytes = pieces.iter().map(|piece| piece.bytes.into());
        let queued = Queued::new(job, bytes, &self.rules);
        self.queue(now, queued);
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

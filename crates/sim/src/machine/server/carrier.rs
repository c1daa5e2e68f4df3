//! Crossings between host and adapters, and the time that they take. The interconnect is shared with the disks.

use super::reads::Reads;
use super::transfers::{BusTransfer, Transfers};
use super::writes::Writes;
use crate::config::{DmaConfig, Invalid, NicConfig, of_interconnect};
use crate::hardware::nic::MESSAGE_BYTES;
use baton_bus::interconnect::{
    DeviceId, Interconnect, InterconnectConfig, Operation, Piece, Transfer, Usage,
};
use baton_bus::{BytesByCategory, Category, Fifo};
use baton_wire::{Span, Time};
use std::cell::Cell;

/// Bytes of a doorbell: the index of the ring.
const DOORBELL_BYTES: u64 = 4;

/// What crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossing {
    /// This number of request descriptors, to an adapter.
    Requests(u32),
    /// This number of response descriptors, to the host.
    Responses(u32),
    /// An interrupt of the host that is independent of the adapter's responses.
    Interrupt,
    /// The data of the DMA with this number, in either direction, and of the DMAs that complete with it.
    Data(u64),
}

/// A crossing that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landed {
    /// A crossing to or from this adapter.
    OfAdapter(DeviceId, Crossing),
    /// The data of the disk read with this token.
    FromDisk(u64),
}

/// Progress of a crossing. Each step is a transfer on the interconnect.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The host rings the doorbell for requests; the adapter fetches the requests next.
    Doorbell(u32),
    /// The host writes a register while it handles an interrupt.
    Register,
    /// The host is interrupted because responses are in its memory.
    Interrupt(u32),
    /// The host is interrupted independently of responses.
    Announce,
    /// The crossing transfers its descriptors or data.
    Move(Crossing),
    /// An adapter reads `pieces` pieces, after which the DMA `number` is complete, if it is given.
    Read { number: Option<u64>, pieces: u32 },
    /// The disks' controller writes the data of the disk read with this token.
    FromDisk(u64),
}

/// Name of a data read in a timeline.
const READ: &str = "read data";

impl Step {
    /// Returns the step's name in a timeline.
    fn name(self) -> &'static str {
        match self {
            Self::Doorbell(_) => "doorbell",
            Self::Register => "register",
            Self::Interrupt(_) | Self::Announce | Self::Move(Crossing::Interrupt) => "interrupt",
            Self::Move(Crossing::Requests(_)) => "read requests",
            Self::Move(Crossing::Responses(_)) => "write responses",
            Self::Move(Crossing::Data(_)) => "write data",
            Self::Read { .. } => READ,
            Self::FromDisk(_) => "write from disk",
        }
    }
}

fn bytes_of(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.bytes)).sum()
}

/// State of an adapter's use of the interconnect.
#[derive(Debug)]
struct Engine {
    config: DmaConfig,
    reads: Reads,
    writes: Writes,
    /// How the adapter interrupts the host independently of responses; `None` if it interrupts with each transfer of responses.
    announces: Option<Operation>,
    /// Number of crossings in progress to the adapter.
    arriving: u32,
}

/// An interconnect, and the additional latency.
#[derive(Debug)]
pub(super) struct Carrier {
    /// The interconnect, or `None` if it is ideal, so that everything crosses immediately.
    bus: Option<Box<dyn Interconnect>>,
    /// Engines by adapter.
    engines: Vec<Engine>,
    /// The controller of the disks, numbered after the adapters.
    disks: DeviceId,
    /// Number of crossings in progress to the host.
    arriving_at_host: u32,
    /// Number of register writes that the bus has not taken yet, to adapters with a limit for them.
    awaited_writes: u32,
    /// Maximum number of these writes with which the host's processor continues to work.
    posted_writes: u32,
    latency: Span,
    /// Steps on the interconnect, by tag, and the devices to which they belong.
    under_way: slab::Slab<(DeviceId, Step)>,
    /// Crossings that have left the interconnect and arrive some time later, in order.
    landing: Fifo<(Time, Landed)>,
    /// Crossings that have arrived.
    landed: Fifo<Landed>,
    /// Cached result of [`Carrier::next_due`], if nothing has changed since.
    due: Cell<Option<Time>>,
    /// Transfers for a timeline, if there is one.
    transfers: Option<Box<Transfers>>,
}

impl Carrier {
    /// Creates an idle carrier for adapters with these DMA parameters.
    pub(super) fn new<'a>(
        config: &InterconnectConfig,
        adapters: impl IntoIterator<Item = &'a NicConfig>,
        latency: Span,
    ) -> Result<Self, Invalid> {
        let engines = adapters.into_iter().map(|nic| Engine {
            config: nic.dma.clone(),
            reads: Reads::new(&nic.dma),
            writes: Writes::new(&nic.dma),
            announces: nic
                .hardware
                .as_ref()
                .map(|hardware| match hardware.messages {
                    true => Operation::DmaWrite,
                    false => Operation::Interrupt,
                }),
            arriving: 0,
        });
        let engines: Vec<_> = engines.collect();
        let posted = engines.iter();
        let posted = posted.filter_map(|engine| engine.config.posted_register_writes);
        let posted_writes = posted.min().unwrap_or(u32::MAX);
        let bus = match config {
            InterconnectConfig::Ideal => None,
            config => {
                let bus = config.build(engines.len() + 1);
                Some(bus.map_err(|error| of_interconnect(&error))?)
            }
        };
        Ok(Self {
            bus,
            disks: DeviceId(engines.len() as u8),
            engines,
            arriving_at_host: 0,
            awaited_writes: 0,
            posted_writes,
            latency,
            under_way: slab::Slab::new(),
            landing: Fifo::new(),
            landed: Fifo::new(),
            due: Cell::new(None),
            transfers: None,
        })
    }

    /// Records the transfers that [`Carrier::poll_transfer`] returns from now on.
    pub(super) fn keep_transfers(&mut self) {
        self.transfers.get_or_insert_default();
    }

    /// Returns the next completed transfer, if transfers are recorded.
    pub(super) fn poll_transfer(&mut self) -> Option<BusTransfer> {
        self.transfers.as_mut()?.poll()
    }

    /// Starts the transfer of `count` requests that the host has put into its memory for an adapter.
    pub(super) fn fetch_requests(&mut self, now: Time, adapter: DeviceId, count: u32) {
        self.engine(adapter).arriving += 1;
        self.write_register(now, adapter, Step::Doorbell(count));
    }

    fn write_register(&mut self, now: Time, adapter: DeviceId, step: Step) {
        let bytes = BytesByCategory::of(Category::Other, DOORBELL_BYTES);
        self.awaited_writes += u32::from(self.awaits_writes_to(adapter));
        self.submit(now, adapter, step, Operation::RegisterWrite, bytes);
    }

    /// Reports whether the number of register writes to this adapter that the bus has not taken yet is limited.
    fn awaits_writes_to(&self, adapter: DeviceId) -> bool {
        let config = &self.engines[usize::from(adapter.0)].config;
        self.bus.is_some() && config.posted_register_writes.is_some()
    }

    /// Reports whether the host's processor waits for register writes.
    #[inline]
    pub(super) fn stalls_host(&self) -> bool {
        self.awaited_writes > self.posted_writes
    }

    /// Starts the transfer of `count` responses from an adapter.
    pub(super) fn write_responses(&mut self, now: Time, adapter: DeviceId, count: u32) {
        let each = self.engine(adapter).config.event_bytes;
        let bytes = BytesByCategory::of(Category::Event, u64::from(count * each));
        let step = Step::Move(Crossing::Responses(count));
        self.arriving_at_host += 1;
        self.submit(now, adapter, step, Operation::DmaWrite, bytes);
    }

    /// Lets an adapter read these pieces, for its DMA with this number and the DMAs that complete with it.
    pub(super) fn read_data(
        &mut self,
        now: Time,
        adapter: DeviceId,
        number: u64,
        pieces: &[Piece],
    ) {
        self.engine(adapter).arriving += 1;
        if self.bus.is_none() {
            if let Some(transfers) = &mut self.transfers {
                transfers.push(adapter, READ, bytes_of(pieces), (now, now));
            }
            return self.land(now, adapter, Crossing::Data(number));
        }
        self.engine(adapter).reads.push(number, pieces);
        self.begin_reads(now, adapter);
        self.due.set(None);
    }

    /// Lets an adapter write the data of its DMA with this number.
    pub(super) fn write_data(
        &mut self,
        now: Time,
        adapter: DeviceId,
        number: u64,
        bytes: BytesByCategory,
    ) {
        let engine = self.engine(adapter);
        engine.arriving += 1;
        if engine.writes.begins_at_once() {
            return self.write_now(now, adapter, number, bytes);
        }
        engine.writes.push(now, number, bytes);
        self.due.set(None);
    }

    /// Begins a write of the data of a DMA.
    fn write_now(&mut self, now: Time, adapter: DeviceId, number: u64, mut bytes: BytesByCategory) {
        let limit = self.engine(adapter).writes.limit;
        while bytes.total() > limit {
            let part = bytes.take(limit);
            if let Some(bus) = &mut self.bus {
                bus.submit(
                    now,
                    Transfer {
                        device: adapter,
                        operation: Operation::DmaWrite,
                        bytes: part,
                        tag: 0,
                        reported: false,
                    },
                );
            }
        }
        let step = Step::Move(Crossing::Data(number));
        self.submit(now, adapter, step, Operation::DmaWrite, bytes);
    }

    /// Lets an adapter interrupt the host.
    pub(super) fn announce(&mut self, now: Time, adapter: DeviceId) {
        let Some(operation) = self.engine(adapter).announces else {
            return;
        };
        let bytes = match operation {
            Operation::DmaWrite => BytesByCategory::of(Category::Other, MESSAGE_BYTES.into()),
            _ => BytesByCategory::default(),
        };
        self.arriving_at_host += 1;
        self.submit(now, adapter, Step::Announce, operation, bytes);
    }

    fn engine(&mut self, adapter: DeviceId) -> &mut Engine {
        &mut self.engines[usize::from(adapter.0)]
    }

    /// Starts the reads that an adapter can start now.
    fn begin_reads(&mut self, now: Time, adapter: DeviceId) {
        while let Some(read) = self.engine(adapter).reads.begin(now) {
            let Some(bus) = &mut self.bus else { return };
            let step = Step::Read {
                number: read.number,
                pieces: read.pieces.len() as u32,
            };
            let tag = self.under_way.insert((adapter, step)) as u64;
            if let Some(transfers) = &mut self.transfers {
                transfers.begin(now, tag, bytes_of(&read.pieces));
            }
            bus.submit_reads(now, adapter, &read.pieces, tag);
            self.due.set(None);
        }
    }

    /// Lets the disks' controller write the data of the disk read with this token.
    pub(super) fn write_from_disk(&mut self, now: Time, token: u64, bytes: BytesByCategory) {
        let step = Step::FromDisk(token);
        self.arriving_at_host += 1;
        self.submit(now, self.disks, step, Operation::DmaWrite, bytes);
    }

    /// Returns the use of the interconnect since [`Carrier::restart_counts`], or `None` if it is ideal.
    pub(super) fn usage(&self, now: Time) -> Option<Usage> {
        self.bus.as_ref().map(|bus| bus.usage(now))
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self, now: Time) {
        if let Some(bus) = &mut self.bus {
            bus.restart_counts(now);
        }
    }

    /// Returns when the next crossing arrives: immediately if one has arrived, and [`Time::NEVER`] if none is in progress.
    #[inline]
    pub(super) fn due(&self) -> Time {
        match self.landed.is_empty() {
            true => self.next_due(),
            false => Time::ZERO,
        }
    }

    /// Returns when the next event is due, other than crossings that have already arrived.
    #[inline]
    fn next_due(&self) -> Time {
        self.due.get().unwrap_or_else(|| self.look_forward())
    }

    #[inline(never)]
    fn look_forward(&self) -> Time {
        let landing = self.landing.front().map_or(Time::NEVER, |&(at, _)| at);
        let engines = self.engines.iter();
        let reads = engines.map(|engine| engine.reads.due().min(engine.writes.due()));
        let done = self.bus.as_ref().and_then(|bus| bus.poll_timeout());
        let due = reads.fold(landing.min(done.unwrap_or(Time::NEVER)), Time::min);
        self.due.set(Some(due));
        due
    }

    /// Processes all events until `now`.
    #[inline]
    pub(super) fn handle_timeout(&mut self, now: Time) {
        while self.next_due() <= now {
            self.see(now);
        }
    }

    fn see(&mut self, now: Time) {
        self.due.set(None);
        self.advance(now);
        for adapter in 0..self.disks.0 {
            if self.engines[usize::from(adapter)].reads.due() <= now {
                self.begin_reads(now, DeviceId(adapter));
            }
            while let Some((number, bytes)) = self.engines[usize::from(adapter)].writes.begin(now) {
                self.write_now(now, DeviceId(adapter), number, bytes);
            }
        }
        while let Some(&(at, landed)) = self.landing.front()
            && at <= now
        {
            self.landing.pop();
            self.landed.push(landed);
        }
    }

    /// Reports whether a crossing has arrived.
    #[inline]
    pub(super) fn has_landed(&self) -> bool {
        !self.landed.is_empty()
    }

    /// Returns the next crossing that has arrived.
    #[inline]
    pub(super) fn poll_landed(&mut self) -> Option<Landed> {
        let landed = self.landed.pop()?;
        match landed {
            Landed::OfAdapter(_, Crossing::Responses(_) | Crossing::Interrupt)
            | Landed::FromDisk(_) => {
                self.arriving_at_host -= 1;
            }
            Landed::OfAdapter(adapter, _) => self.engine(adapter).arriving -= 1,
        }
        Some(landed)
    }

    /// Reports whether a crossing to the host is in progress.
    #[inline]
    pub(super) fn goes_to_host(&self) -> bool {
        self.arriving_at_host > 0
    }

    /// Reports whether a crossing to the adapter with this number is in progress.
    #[inline]
    pub(super) fn goes_to(&self, adapter: usize) -> bool {
        self.engines[adapter].arriving > 0
    }

    /// Starts the next step of each crossing whose step on the interconnect is done.
    fn advance(&mut self, now: Time) {
        if let Some(bus) = &mut self.bus {
            bus.handle_timeout(now);
        }
        while let Some(done) = self.bus.as_mut().and_then(|bus| bus.poll_done()) {
            let (device, step) = self.under_way.remove(done.tag as usize);
            if let Some(transfers) = &mut self.transfers {
                transfers.end(done.tag, device, step.name(), done.at);
            }
            if matches!(step, Step::Doorbell(_) | Step::Register) && self.awaits_writes_to(device) {
                self.awaited_writes -= 1;
            }
            match step {
                Step::Doorbell(count) => {
                    let each = self.engine(device).config.descriptor_bytes;
                    let bytes = BytesByCategory::of(Category::Descriptor, u64::from(count * each));
                    let step = Step::Move(Crossing::Requests(count));
                    self.submit(now, device, step, Operation::DmaRead, bytes);
                }
                Step::Move(Crossing::Responses(count))
                    if self.engine(device).announces.is_none() =>
                {
                    let nothing = BytesByCategory::default();
                    let step = Step::Interrupt(count);
                    self.submit(now, device, step, Operation::Interrupt, nothing);
                }
                Step::Interrupt(_) | Step::Announce => {
                    self.write_registers(now, device);
                    self.crossed(done.at, device, step);
                }
                Step::Read { pieces, .. } => {
                    self.engine(device).reads.handle_done(done.at, pieces);
                    self.crossed(done.at, device, step);
                }
                last => self.crossed(done.at, device, last),
            }
        }
    }

    /// Completes a crossing after its last step; on an ideal interconnect, after its first.
    #[inline]
    fn crossed(&mut self, at: Time, device: DeviceId, step: Step) {
        match step {
            Step::Doorbell(count) => self.land(at, device, Crossing::Requests(count)),
            Step::Interrupt(count) => self.land(at, device, Crossing::Responses(count)),
            Step::Announce => self.land(at, device, Crossing::Interrupt),
            Step::Move(crossing) => self.land(at, device, crossing),
            Step::Register | Step::Read { number: None, .. } => {}
            Step::Read {
                number: Some(number),
                ..
            } => self.land(at, device, Crossing::Data(number)),
            // The latency of the disk's controller is part of the disk's.
            Step::FromDisk(token) => self.landed.push(Landed::FromDisk(token)),
        }
    }

    /// Writes the registers that the driver writes while it handles an interrupt.
    fn write_registers(&mut self, now: Time, adapter: DeviceId) {
        let registers = self.engine(adapter).config.interrupt_register_writes;
        if self.awaits_writes_to(adapter) {
            return (0..registers).for_each(|_| self.write_register(now, adapter, Step::Register));
        }
        let Some(bus) = &mut self.bus else { return };
        for _ in 0..registers {
            bus.submit(
                now,
                Transfer {
                    device: adapter,
                    operation: Operation::RegisterWrite,
                    bytes: BytesByCategory::of(Category::Other, DOORBELL_BYTES),
                    tag: 0,
                    reported: false,
                },
            );
        }
    }

    #[inline]
    fn land(&mut self, crossed: Time, adapter: DeviceId, crossing: Crossing) {
        let landed = Landed::OfAdapter(adapter, crossing);
        match self.latency {
            Span::ZERO => self.landed.push(landed),
            latency => {
                self.landing.push((crossed + latency, landed));
                self.due.set(None);
            }
        }
    }

    #[inline]
    fn submit(
        &mut self,
        now: Time,
        device: DeviceId,
        step: Step,
        operation: Operation,
        bytes: BytesByCategory,
    ) {
        match self.bus {
            None => self.cross_at_once(now, device, step, &bytes),
            Some(_) => self.submit_to_bus(now, device, step, operation, bytes),
        }
    }

    #[inline]
    fn cross_at_once(&mut self, now: Time, device: DeviceId, step: Step, bytes: &BytesByCategory) {
        if let Some(transfers) = &mut self.transfers {
            transfers.push(device, step.name(), bytes.total(), (now, now));
        }
        self.crossed(now, device, step);
    }

    fn submit_to_bus(
        &mut self,
        now: Time,
        device: DeviceId,
        step: Step,
        operation: Operation,
        bytes: BytesByCategory,
    ) {
        let Some(bus) = &mut self.bus else { return };
        let tag = self.under_way.insert((device, step)) as u64;
        if let Some(transfers) = &mut self.transfers {
            transfers.begin(now, tag, bytes.total());
        }
        let transfer = Transfer {
            device,
            operation,
            bytes,
            tag,
            reported: true,
        };
        bus.submit(now, transfer);
        self.due.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: DeviceId = DeviceId(0);
    const SECOND: DeviceId = DeviceId(1);

    fn carrier(interconnect: &str, latency_us: u64) -> Carrier {
        let config = InterconnectConfig::preset(interconnect).unwrap();
        let nic = NicConfig::default();
        Carrier::new(&config, [&nic, &nic], Span::from_us(latency_us)).unwrap()
    }

    /// Returns everything that arrives, with the times.
    fn landed(carrier: &mut Carrier) -> Vec<(Time, Landed)> {
        let mut all = Vec::new();
        while carrier.due() < Time::NEVER {
            let now = carrier.due();
            carrier.handle_timeout(now);
            while let Some(landed) = carrier.poll_landed() {
                all.push((now, landed));
            }
        }
        all
    }

    #[test]
    fn without_an_interconnect_only_the_latency_counts() {
        let mut carrier = carrier("ideal", 250);
        carrier.fetch_requests(Time::ZERO, FIRST, 3);
        carrier.write_responses(Time::ZERO, SECOND, 1);
        let there = Time::ZERO + Span::from_us(250);
        let mut all = landed(&mut carrier);
        all.sort_by_key(|(_, landed)| format!("{landed:?}"));
        let expected = [
            Landed::OfAdapter(FIRST, Crossing::Requests(3)),
            Landed::OfAdapter(SECOND, Crossing::Responses(1)),
        ];
        assert_eq!(all, expected.map(|landed| (there, landed)));
    }

    #[test]
    fn larger_transfers_take_longer_on_a_bus() {
        let time = |count| {
            let mut carrier = carrier("pci-64-33", 0);
            carrier.fetch_requests(Time::ZERO, FIRST, count);
            let all = landed(&mut carrier);
            assert_eq!(all.len(), 1);
            all[0].0
        };
        assert!(time(1) > Time::ZERO);
        assert!(time(128) > time(1));
    }

    #[test]
    fn nics_that_share_a_bus_wait_for_each_other() {
        let last = |second| {
            let mut carrier = carrier("pci-64-33", 0);
            carrier.fetch_requests(Time::ZERO, FIRST, 128);
            if second {
                carrier.fetch_requests(Time::ZERO, SECOND, 128);
            }
            landed(&mut carrier).pop().unwrap().0
        };
        assert!(last(true) > last(false));
    }
}

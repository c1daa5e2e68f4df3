//! How long it takes to cross between host and adapter.

use crate::EventQueue;
use crate::config::{Invalid, of_interconnect};
use baton_bus::interconnect::{
    DeviceId, Interconnect, InterconnectConfig, Operation, Transfer, Usage,
};
use baton_bus::{BytesByCategory, Category, Descriptor};
use baton_wire::{Span, Time};

/// The adapter.
const ADAPTER: DeviceId = DeviceId(0);
/// The disks' controller.
const DISKS: DeviceId = DeviceId(1);
/// Both.
const DEVICES: usize = 2;
/// Bytes of a doorbell: the ring's index.
const DOORBELL_BYTES: u64 = 4;

/// What crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossing {
    /// So many descriptors of requests, to the adapter.
    Requests(u32),
    /// So many descriptors of responses, to the host.
    Responses(u32),
    /// The data of the DMA of this number, either way.
    Data(u64),
    /// What a read of the disk of this token has fetched.
    FromDisk(u64),
}

/// Where a crossing has got to. Each step is a transfer on the interconnect.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The host tells of requests; the adapter fetches them next.
    Doorbell(u32),
    /// The host is told of responses, which stand in its memory.
    Interrupt(u32),
    /// What crosses does so.
    Move(Crossing),
}

/// An interconnect, and what takes time besides.
#[derive(Debug)]
pub(super) struct Carrier {
    bus: Box<dyn Interconnect>,
    latency: Span,
    /// Steps on the interconnect, by tag.
    under_way: slab::Slab<Step>,
    /// What has crossed the interconnect and is not yet there.
    landing: EventQueue<Crossing>,
}

impl Carrier {
    /// Nothing crosses yet.
    pub(super) fn new(config: &InterconnectConfig, latency: Span) -> Result<Self, Invalid> {
        Ok(Self {
            bus: config
                .build(DEVICES)
                .map_err(|error| of_interconnect(&error))?,
            latency,
            under_way: slab::Slab::new(),
            landing: EventQueue::with_capacity(64),
        })
    }

    /// The host has put `count` requests into its memory.
    pub(super) fn fetch_requests(&mut self, now: Time, count: u32) {
        let bytes = BytesByCategory::of(Category::Other, DOORBELL_BYTES);
        self.submit(now, Step::Doorbell(count), Operation::RegisterWrite, bytes);
    }

    /// The adapter writes `count` responses.
    pub(super) fn write_responses(&mut self, now: Time, count: u32) {
        let bytes = descriptors(Category::Event, count);
        let step = Step::Move(Crossing::Responses(count));
        self.submit(now, step, Operation::DmaWrite, bytes);
    }

    /// The adapter moves the data of DMA number `number`.
    pub(super) fn move_data(
        &mut self,
        now: Time,
        number: u64,
        operation: Operation,
        bytes: BytesByCategory,
    ) {
        let step = Step::Move(Crossing::Data(number));
        self.submit(now, step, operation, bytes);
    }

    /// The disks' controller writes what the read of this token has fetched.
    pub(super) fn write_from_disk(&mut self, now: Time, token: u64, bytes: BytesByCategory) {
        let step = Step::Move(Crossing::FromDisk(token));
        self.submit_for(DISKS, now, step, Operation::DmaWrite, bytes);
    }

    /// How the interconnect was used since [`Carrier::restart_counts`].
    pub(super) fn usage(&mut self, now: Time) -> Usage {
        self.bus.usage(now)
    }

    /// Begins to count anew.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.bus.restart_counts(now);
    }

    /// When something may get there next.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match (self.bus.poll_timeout(), self.landing.peek_time()) {
            (Some(bus), Some(landing)) => Some(bus.min(landing)),
            (bus, landing) => bus.or(landing),
        }
    }

    /// What gets there by `now`, in order.
    pub(super) fn poll_landed(&mut self, now: Time) -> Option<Crossing> {
        if self.bus.poll_timeout().is_some_and(|due| due <= now) {
            self.bus.handle_timeout(now);
            self.advance(now);
        }
        self.landing.peek_time().filter(|&at| at <= now)?;
        self.landing.pop().map(|(_, crossing)| crossing)
    }

    /// What is done on the interconnect goes on.
    fn advance(&mut self, now: Time) {
        while let Some(done) = self.bus.poll_done() {
            match self.under_way.remove(done.tag as usize) {
                Step::Doorbell(count) => {
                    let bytes = descriptors(Category::Descriptor, count);
                    let step = Step::Move(Crossing::Requests(count));
                    self.submit(now, step, Operation::DmaRead, bytes);
                }
                Step::Move(Crossing::Responses(count)) => {
                    let nothing = BytesByCategory::default();
                    self.submit(now, Step::Interrupt(count), Operation::Interrupt, nothing);
                }
                Step::Interrupt(count) => self.land(done.at, Crossing::Responses(count)),
                // The controller itself has the latency of the disk.
                Step::Move(crossing @ Crossing::FromDisk(_)) => {
                    self.landing.push(done.at, crossing)
                }
                Step::Move(crossing) => self.land(done.at, crossing),
            }
        }
    }

    fn land(&mut self, crossed: Time, crossing: Crossing) {
        self.landing.push(crossed + self.latency, crossing);
    }

    fn submit(&mut self, now: Time, step: Step, operation: Operation, bytes: BytesByCategory) {
        self.submit_for(ADAPTER, now, step, operation, bytes);
    }

    fn submit_for(
        &mut self,
        device: DeviceId,
        now: Time,
        step: Step,
        operation: Operation,
        bytes: BytesByCategory,
    ) {
        let tag = self.under_way.insert(step) as u64;
        let transfer = Transfer {
            device,
            operation,
            bytes,
            tag,
            reported: true,
        };
        self.bus.submit(now, transfer);
    }
}

fn descriptors(category: Category, count: u32) -> BytesByCategory {
    BytesByCategory::of(category, u64::from(count * Descriptor::BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrier(interconnect: &str, latency_us: u64) -> Carrier {
        let config = InterconnectConfig::preset(interconnect).unwrap();
        Carrier::new(&config, Span::from_us(latency_us)).unwrap()
    }

    /// Everything that lands, and when.
    fn landed(carrier: &mut Carrier) -> Vec<(Time, Crossing)> {
        let mut all = Vec::new();
        while let Some(now) = carrier.poll_timeout() {
            while let Some(crossing) = carrier.poll_landed(now) {
                all.push((now, crossing));
            }
        }
        all
    }

    #[test]
    fn without_an_interconnect_only_the_latency_counts() {
        let mut carrier = carrier("ideal", 250);
        carrier.fetch_requests(Time::ZERO, 3);
        carrier.write_responses(Time::ZERO, 1);
        let there = Time::ZERO + Span::from_us(250);
        let mut all = landed(&mut carrier);
        all.sort_by_key(|(_, crossing)| format!("{crossing:?}"));
        let expected = [Crossing::Requests(3), Crossing::Responses(1)];
        assert_eq!(all, expected.map(|crossing| (there, crossing)));
    }

    #[test]
    fn on_a_bus_more_takes_longer() {
        let time = |count| {
            let mut carrier = carrier("pci-64-33", 0);
            carrier.fetch_requests(Time::ZERO, count);
            let all = landed(&mut carrier);
            assert_eq!(all.len(), 1);
            all[0].0
        };
        assert!(time(1) > Time::ZERO);
        assert!(time(128) > time(1));
    }
}

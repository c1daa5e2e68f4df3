//! The host's processor and memory, and the costs of drivers, tests and applications.

mod meter;

use super::frame::Frame;
use baton_kernel::{Access, footprint};
use baton_sim::HostProcessor;
use baton_sim::config::{HostConfig, NicHardware};
use baton_sim::hardware::ConfigError;
use baton_sim::hardware::nic::Frame as _;
use baton_wire::Time;
pub(super) use meter::Meter;
use std::num::NonZeroU64;

/// Addresses in the modelled host's memory, below the kernel's pools. The area for each ring and each pool of buffers fits the largest ring.
mod address {
    pub(super) const SEND_RING: u64 = 0x0100_0000;
    pub(super) const RECEIVE_RING: u64 = 0x0200_0000;
    pub(super) const SEND_BUFFERS: u64 = 0x1000_0000;
    pub(super) const RECEIVE_BUFFERS: u64 = 0x2000_0000;
    pub(super) const BUFFER_HEADERS: u64 = 0x3000_0000;

    /// Distance between the addresses of one NIC and those of the next.
    const NIC: u64 = 1 << 32;

    pub(super) fn of_nic(nic: u8) -> u64 {
        u64::from(nic) * NIC
    }
}

/// Bytes between buffers.
const BUFFER_STRIDE: u64 = 2_048;

/// Bytes of a buffer's header in the kernel: its pointers and its length.
const BUFFER_HEADER: u32 = 32;

/// Bytes between buffer headers.
const BUFFER_HEADER_STRIDE: u64 = 256;

/// First header of send buffers, which follow the headers of all buffers that a receive ring can have.
const FIRST_SEND_HEADER: u32 = 1 << 17;

/// Consumer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// A test or a router: no costs beyond the driver.
    Datagram,
    /// A test's TCP, without sockets.
    Segment,
    /// A connection of a server's kernel, with its number if the connection exists.
    Socket(Option<u32>),
}

impl Traffic {
    /// Returns the instructions beyond the driver, if `of_segment` are those of a test's TCP.
    fn instructions(self, of_segment: u32) -> u32 {
        match self {
            Self::Segment => of_segment,
            Self::Datagram | Self::Socket(_) => 0,
        }
    }
}

/// A task of the processor. A frame comes with its NIC and its slot in the driver's ring.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// The application gives a frame to the driver. The frame lies in the slot's buffer, or where it was received.
    Send(u8, u32, Frame),
    /// The application gives a frame to the driver, which refuses it.
    Refuse,
    /// The driver of a NIC handles a received frame.
    Receive(u8, u32, Frame),
    /// The driver of a NIC reclaims descriptors, from a slot of its ring on.
    Reclaim { nic: u8, slot: u32, count: u32 },
    /// The processor enters the driver of a NIC because of an interrupt, and will return.
    Enter(u8),
    /// A driver checks whether its NIC has work.
    Poll { nic: u8, slot: u32 },
    /// The processor has been waiting for a register since this time.
    ReadRegister(Time),
    /// The application works.
    Application,
}

/// A NIC driver's data in memory.
#[derive(Debug)]
struct Driver {
    send_descriptor: u32,
    receive_descriptor: u32,
    /// Whether the driver computes and verifies TCP checksums.
    makes_checksums: bool,
    checks_checksums: bool,
    /// Addresses of the frames in the slots of the send ring.
    to_send: Vec<u64>,
}

/// A host's processor and memory.
#[derive(Debug)]
pub(super) struct Host {
    profile: HostConfig,
    processor: HostProcessor,
    drivers: Vec<Driver>,
}

impl Host {
    pub(super) fn new(profile: &HostConfig, nics: &[&NicHardware]) -> Result<Self, ConfigError> {
        let driver = |nic: &&NicHardware| Driver {
            send_descriptor: nic.descriptors.send_bytes,
            receive_descriptor: nic.descriptors.receive_bytes,
            makes_checksums: !nic.checksums.send,
            checks_checksums: !nic.checksums.receive,
            to_send: vec![0; nic.descriptors.send as usize],
        };
        Ok(Self {
            profile: profile.clone(),
            processor: HostProcessor::new(profile, true)?,
            drivers: nics.iter().map(driver).collect(),
        })
    }

    /// Returns the address of a frame received into this slot of a ring.
    pub(super) fn received_at(nic: u8, slot: u32) -> NonZeroU64 {
        let first =
            const { NonZeroU64::new(address::RECEIVE_BUFFERS).expect("the address is not 0") };
        first.saturating_add(address::of_nic(nic) + u64::from(slot) * BUFFER_STRIDE)
    }

    /// Begins a task now, and returns when it will be done. Waiting and the application's own work are charged elsewhere.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, task: &Task, traffic: Traffic) -> Time {
        let costs = self.profile.driver;
        let drivers = &mut self.drivers;
        let mut meter = Meter(self.processor.begin_piece(now, 0));
        let of_64_bytes = self.profile.instructions.checksum_64_bytes;
        let instructions = match *task {
            Task::Send(nic, slot, ref frame) => {
                let driver = &mut drivers[usize::from(nic)];
                let of_nic = address::of_nic(nic);
                let ring = of_nic + address::SEND_RING;
                let own = of_nic + address::SEND_BUFFERS + u64::from(slot) * BUFFER_STRIDE;
                let buffer = frame.lies_at.map_or(own, NonZeroU64::get);
                driver.to_send[slot as usize] = buffer;
                meter.descriptor(ring, slot, driver.send_descriptor, true);
                meter.header(buffer, traffic != Traffic::Datagram);
                if let Traffic::Socket(connection) = traffic {
                    let header = FIRST_SEND_HEADER + slot;
                    footprint::tcp_output(&mut meter, connection, &[header]);
                    footprint::ip_output(&mut meter, connection, header);
                }
                let of_checksum = match driver.makes_checksums {
                    true => meter.checksum(traffic, buffer, frame.bytes(), of_64_bytes),
                    false => 0,
                };
                costs.send + traffic.instructions(costs.segment) + of_checksum
            }
            Task::Receive(nic, slot, ref frame) => {
                let driver = &drivers[usize::from(nic)];
                let of_nic = address::of_nic(nic);
                let buffer = Self::received_at(nic, slot).get();
                let ring = of_nic + address::RECEIVE_RING;
                meter.descriptor(ring, slot, driver.receive_descriptor, true);
                let headers = of_nic + address::BUFFER_HEADERS;
                meter.range(
                    headers + u64::from(slot) * BUFFER_HEADER_STRIDE,
                    BUFFER_HEADER,
                    true,
                );
                meter.header(buffer, false);
                if let Traffic::Socket(connection) = traffic {
                    footprint::ip_input(&mut meter, (slot, slot));
                    footprint::tcp_input(&mut meter, connection);
                }
                let of_checksum = match driver.checks_checksums {
                    true => meter.checksum(traffic, buffer, frame.bytes(), of_64_bytes),
                    false => 0,
                };
                costs.receive + traffic.instructions(costs.segment) + of_checksum
            }
            Task::Reclaim { nic, slot, count } => {
                let len = drivers[usize::from(nic)].send_descriptor;
                let ring = address::of_nic(nic) + address::SEND_RING;
                meter.descriptor(ring, slot, len * count, false);
                costs.reclaim * count
            }
            Task::Refuse => costs.refuse,
            Task::Enter(_) => costs.interrupt,
            Task::Poll { nic, slot } => {
                let len = drivers[usize::from(nic)].receive_descriptor;
                let ring = address::of_nic(nic) + address::RECEIVE_RING;
                meter.descriptor(ring, slot, len, false);
                costs.poll
            }
            Task::ReadRegister(_) | Task::Application => 0,
        };
        meter.execute(instructions);
        self.processor.end_piece(now)
    }

    /// Lets an application work now. Returns when the work will be done, or `None` if there was none.
    pub(super) fn begin_application(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut Meter<'_>) -> bool,
    ) -> Option<Time> {
        let mut meter = Meter(self.processor.begin_piece(now, 0));
        work(&mut meter).then(|| self.processor.end_piece(now))
    }

    /// Charges for the time since `since`, during which the processor waited for an answer of the NIC.
    pub(super) fn waited(&mut self, since: Time, now: Time) {
        self.processor.wait(since, now);
    }

    /// Models that a NIC writes a frame and its descriptor to this slot of its ring.
    #[inline]
    pub(super) fn receive_by_dma(&mut self, now: Time, nic: u8, (slot, frame): &(u32, Frame)) {
        let len = self.drivers[usize::from(nic)].receive_descriptor;
        let ring = address::of_nic(nic) + address::RECEIVE_RING;
        let buffer = Self::received_at(nic, *slot).get();
        for (address, bytes) in [(buffer, frame.bytes()), (ring + u64::from(slot * len), len)] {
            (self.processor).dma(now, address, bytes, Access::Write);
        }
    }

    /// Models that a NIC reads the frame in this slot of its ring.
    #[inline]
    pub(super) fn send_by_dma(&mut self, now: Time, nic: u8, (slot, frame): &(u32, Frame)) {
        let buffer = self.drivers[usize::from(nic)].to_send[*slot as usize];
        (self.processor).dma(now, buffer, frame.bytes(), Access::Read);
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.processor.restart_counts(now);
    }

    /// Returns the share of the time since the start of the measurement in which the processor worked or waited, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        self.processor.utilisation(now)
    }

    pub(super) fn refill_batch(&self) -> u32 {
        self.profile.driver.refill_batch
    }
}

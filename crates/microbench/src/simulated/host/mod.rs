//! The host's processor and memory, and the costs of drivers, tests and applications.

mod meter;

use baton_kernel::footprint;
use baton_sim::config::{HostConfig, NicHardware};
use baton_sim::hardware::{ConfigError, MemoryHierarchy, Processor};
use baton_wire::Time;
pub(super) use meter::Meter;
use meter::{OfOperations, of_operations};
use std::num::NonZeroU64;

/// Addresses in the modelled host's memory. The area for each ring and each pool of buffers fits the largest ring.
mod address {
    use baton_kernel::Pool;

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

    /// The pools of kernel and applications lie behind the memory of all NICs. The odd multiple of a line keeps pools from starting in the
    /// same cache set.
    pub(super) fn of_pool(pool: Pool) -> u64 {
        let pool = pool as u64;
        ((pool + 1) << 36) + pool * 64 * 137
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

/// A slot of a driver's ring, and the length of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) nic: u8,
    pub(super) slot: u32,
    pub(super) bytes: u32,
}

/// Work of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Gives a frame to the driver, which puts it into this slot of its ring. The frame lies in the slot's buffer, or where it was
    /// received.
    Send(Place, Traffic, Option<NonZeroU64>),
    /// Gives a frame to the driver, which refuses it.
    Refuse,
    /// Takes a frame from this slot of the ring.
    Receive(Place, Traffic),
    /// Reclaims `count` descriptors of a NIC, from this slot of its ring on.
    Reclaim { nic: u8, slot: u32, count: u32 },
    /// Enters the driver by an interrupt, and returns.
    Interrupt,
    /// Checks whether a NIC has work for the driver.
    Poll { nic: u8, slot: u32 },
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
    processor: Processor,
    memory: MemoryHierarchy,
    of_operations: OfOperations,
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
            processor: Processor::new(&profile.processor())?,
            memory: MemoryHierarchy::new(&profile.memory())?,
            of_operations: of_operations(profile),
            drivers: nics.iter().map(driver).collect(),
        })
    }

    /// Returns the address of a frame received into this slot of a ring.
    pub(super) fn received_at(nic: u8, slot: u32) -> NonZeroU64 {
        let first =
            const { NonZeroU64::new(address::RECEIVE_BUFFERS).expect("the address is not 0") };
        first.saturating_add(address::of_nic(nic) + u64::from(slot) * BUFFER_STRIDE)
    }

    /// Begins `work` now, and returns when it will be done.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, work: Work) -> Time {
        let costs = self.profile.driver;
        let drivers = &mut self.drivers;
        let mut meter = Meter {
            memory: &mut self.memory,
            of_operations: &self.of_operations,
            cycle: self.processor.cycle_at(now),
            executed: 0,
            stall: 0,
        };
        let of_64_bytes = self.profile.instructions.checksum_64_bytes;
        let checksum = |bytes: u32| of_64_bytes * bytes.div_ceil(64);
        let instructions = match work {
            Work::Send(Place { nic, slot, bytes }, traffic, lies_at) => {
                let driver = &mut drivers[usize::from(nic)];
                let of_nic = address::of_nic(nic);
                let ring = of_nic + address::SEND_RING;
                let own = of_nic + address::SEND_BUFFERS + u64::from(slot) * BUFFER_STRIDE;
                let buffer = lies_at.map_or(own, NonZeroU64::get);
                driver.to_send[slot as usize] = buffer;
                meter.descriptor(ring, slot, driver.send_descriptor, true);
                meter.header(buffer, traffic != Traffic::Datagram);
                let of_tcp = match traffic {
                    Traffic::Datagram => 0,
                    Traffic::Segment => costs.segment,
                    Traffic::Socket(connection) => {
                        let header = FIRST_SEND_HEADER + slot;
                        footprint::tcp_output(&mut meter, connection, &[header]);
                        footprint::ip_output(&mut meter, connection, header);
                        0
                    }
                };
                let of_checksum = if traffic != Traffic::Datagram && driver.makes_checksums {
                    meter.range(buffer, bytes, false);
                    checksum(bytes)
                } else {
                    0
                };
                costs.send + of_tcp + of_checksum
            }
            Work::Receive(Place { nic, slot, bytes }, traffic) => {
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
                let of_tcp = match traffic {
                    Traffic::Datagram => 0,
                    Traffic::Segment => costs.segment,
                    Traffic::Socket(connection) => {
                        footprint::ip_input(&mut meter, (slot, slot));
                        footprint::tcp_input(&mut meter, connection);
                        0
                    }
                };
                let of_checksum = if traffic != Traffic::Datagram && driver.checks_checksums {
                    meter.range(buffer, bytes, false);
                    checksum(bytes)
                } else {
                    0
                };
                costs.receive + of_tcp + of_checksum
            }
            Work::Reclaim { nic, slot, count } => {
                let len = drivers[usize::from(nic)].send_descriptor;
                let ring = address::of_nic(nic) + address::SEND_RING;
                meter.descriptor(ring, slot, len * count, false);
                costs.reclaim * count
            }
            Work::Refuse => costs.refuse,
            Work::Interrupt => costs.interrupt,
            Work::Poll { nic, slot } => {
                let len = drivers[usize::from(nic)].receive_descriptor;
                let ring = address::of_nic(nic) + address::RECEIVE_RING;
                meter.descriptor(ring, slot, len, false);
                costs.poll
            }
        };
        let executed = u64::from(instructions) + meter.executed;
        let stall = meter.stall;
        self.processor.run(now, executed, stall)
    }

    /// Lets an application work now. Returns when the work will be done, or `None` if there was none.
    pub(super) fn begin_application(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut Meter<'_>) -> bool,
    ) -> Option<Time> {
        let mut meter = Meter {
            memory: &mut self.memory,
            of_operations: &self.of_operations,
            cycle: self.processor.cycle_at(now),
            executed: 0,
            stall: 0,
        };
        if !work(&mut meter) {
            return None;
        }
        let (executed, stall) = (meter.executed, meter.stall);
        Some(self.processor.run(now, executed, stall))
    }

    /// Charges for the time since `since`, during which the processor waited for an answer of the NIC.
    pub(super) fn waited(&mut self, since: Time, now: Time) {
        let cycles = self.processor.cycle_at(now) - self.processor.cycle_at(since);
        self.processor.run(since, 0, cycles);
    }

    /// Models that a NIC writes a frame and its descriptor to this slot of its ring.
    #[inline]
    pub(super) fn receive_by_dma(&mut self, now: Time, Place { nic, slot, bytes }: Place) {
        let cycle = self.processor.cycle_at(now);
        let len = self.drivers[usize::from(nic)].receive_descriptor;
        let ring = address::of_nic(nic) + address::RECEIVE_RING;
        let buffer = Self::received_at(nic, slot).get();
        self.memory.dma_write(cycle, buffer, bytes);
        self.memory
            .dma_write(cycle, ring + u64::from(slot * len), len);
    }

    /// Models that a NIC reads the frame in this slot of its ring.
    #[inline]
    pub(super) fn send_by_dma(&mut self, now: Time, Place { nic, slot, bytes }: Place) {
        let cycle = self.processor.cycle_at(now);
        let buffer = self.drivers[usize::from(nic)].to_send[slot as usize];
        self.memory.dma_read(cycle, buffer, bytes);
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.processor.start_measurement(now);
    }

    /// Returns the share of the time since the start of the measurement in which the processor worked or waited, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        let (busy, idle) = (self.processor.busy(now), self.processor.idle(now));
        busy.as_ps() as f64 / (busy + idle).as_ps().max(1) as f64
    }

    pub(super) fn refill_batch(&self) -> u32 {
        self.profile.driver.refill_batch
    }
}

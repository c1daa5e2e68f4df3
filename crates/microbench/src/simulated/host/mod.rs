//! The host's processor and memory, and what drivers and tests cost them.

use crate::profile::{HostProfile, NicProfile};
use baton_sim::hardware::{ConfigError, MemoryHierarchy, Processor};
use baton_wire::Time;

/// Where things lie in the modelled host's memory. Each ring and each pool of buffers has room for the largest ring.
mod address {
    pub(super) const SEND_RING: u64 = 0x0100_0000;
    pub(super) const RECEIVE_RING: u64 = 0x0200_0000;
    pub(super) const SEND_BUFFERS: u64 = 0x1000_0000;
    pub(super) const RECEIVE_BUFFERS: u64 = 0x2000_0000;
    pub(super) const BUFFER_HEADERS: u64 = 0x3000_0000;
}

/// Bytes between buffers.
const BUFFER_STRIDE: u64 = 2_048;

/// Bytes of a buffer's header in the kernel, which are its pointers and its length.
const BUFFER_HEADER: u32 = 32;

/// Bytes between those.
const BUFFER_HEADER_STRIDE: u64 = 256;

/// Bytes of the headers of a frame, as far as drivers and tests look at them.
const FRAME_HEADERS: u32 = 54;

/// What the processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Gives a frame of so many bytes to the driver, which puts it into this place of its ring.
    Send {
        slot: u32,
        bytes: u32,
        is_segment: bool,
    },
    /// Gives a frame to the driver, which refuses it.
    Refuse,
    /// Takes a frame of so many bytes from this place of the ring.
    Receive {
        slot: u32,
        bytes: u32,
        is_segment: bool,
    },
    /// Takes back so many descriptors from this place of the ring on.
    Reclaim { slot: u32, count: u32 },
    /// Goes from what was interrupted to the driver, and back.
    Interrupt,
}

/// A host's processor and memory.
#[derive(Debug)]
pub(super) struct Host {
    profile: HostProfile,
    processor: Processor,
    memory: MemoryHierarchy,
    send_descriptor: u32,
    receive_descriptor: u32,
    /// Whether it makes and checks TCP's checksums.
    makes_checksums: bool,
    checks_checksums: bool,
}

impl Host {
    pub(super) fn new(profile: &HostProfile, nic: &NicProfile) -> Result<Self, ConfigError> {
        Ok(Self {
            profile: profile.clone(),
            processor: Processor::new(&profile.processor)?,
            memory: MemoryHierarchy::new(&profile.memory)?,
            send_descriptor: nic.descriptors.send_bytes,
            receive_descriptor: nic.descriptors.receive_bytes,
            makes_checksums: !nic.checksums.send,
            checks_checksums: !nic.checksums.receive,
        })
    }

    /// Begins `work` now: when it is done.
    pub(super) fn begin(&mut self, now: Time, work: Work) -> Time {
        let costs = self.profile.instructions;
        let mut touched = Touched {
            memory: &mut self.memory,
            cycle: self.processor.cycle_at(now),
            stall: 0,
        };
        let checksum = |bytes: u32| costs.checksum_64_bytes * bytes.div_ceil(64);
        let instructions = match work {
            Work::Send {
                slot,
                bytes,
                is_segment,
            } => {
                let buffer = address::SEND_BUFFERS + u64::from(slot) * BUFFER_STRIDE;
                touched.descriptor(address::SEND_RING, slot, self.send_descriptor, true);
                touched.header(buffer, is_segment);
                let of_segment = if is_segment { costs.segment } else { 0 };
                let of_checksum = if is_segment && self.makes_checksums {
                    touched.range(buffer, bytes, false);
                    checksum(bytes)
                } else {
                    0
                };
                costs.send + of_segment + of_checksum
            }
            Work::Receive {
                slot,
                bytes,
                is_segment,
            } => {
                let buffer = address::RECEIVE_BUFFERS + u64::from(slot) * BUFFER_STRIDE;
                touched.descriptor(address::RECEIVE_RING, slot, self.receive_descriptor, true);
                touched.range(
                    address::BUFFER_HEADERS + u64::from(slot) * BUFFER_HEADER_STRIDE,
                    BUFFER_HEADER,
                    true,
                );
                touched.header(buffer, false);
                let of_segment = if is_segment { costs.segment } else { 0 };
                let of_checksum = if is_segment && self.checks_checksums {
                    touched.range(buffer, bytes, false);
                    checksum(bytes)
                } else {
                    0
                };
                costs.receive + of_segment + of_checksum
            }
            Work::Reclaim { slot, count } => {
                touched.descriptor(
                    address::SEND_RING,
                    slot,
                    self.send_descriptor * count,
                    false,
                );
                costs.reclaim * count
            }
            Work::Refuse => costs.refuse,
            Work::Interrupt => costs.interrupt,
        };
        let stall = touched.stall;
        self.processor.run(now, instructions.into(), stall)
    }

    /// The processor waits from `since` on for what has come now: an answer of the NIC.
    pub(super) fn waited(&mut self, since: Time, now: Time) {
        let cycles = self.processor.cycle_at(now) - self.processor.cycle_at(since);
        self.processor.run(since, 0, cycles);
    }

    /// The NIC has written a frame of so many bytes, and its descriptor, to this place of the ring.
    pub(super) fn receive_by_dma(&mut self, now: Time, slot: u32, bytes: u32) {
        let cycle = self.processor.cycle_at(now);
        let descriptor = address::RECEIVE_RING + u64::from(slot * self.receive_descriptor);
        let buffer = address::RECEIVE_BUFFERS + u64::from(slot) * BUFFER_STRIDE;
        self.memory.dma_write(cycle, buffer, bytes);
        self.memory
            .dma_write(cycle, descriptor, self.receive_descriptor);
    }

    /// The NIC has read a frame of so many bytes from this place of the ring.
    pub(super) fn send_by_dma(&mut self, now: Time, slot: u32, bytes: u32) {
        let cycle = self.processor.cycle_at(now);
        let buffer = address::SEND_BUFFERS + u64::from(slot) * BUFFER_STRIDE;
        self.memory.dma_read(cycle, buffer, bytes);
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.processor.start_measurement(now);
    }

    /// Time since then in which it worked or waited, as a share, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        let (busy, idle) = (self.processor.busy(now), self.processor.idle(now));
        busy.as_ps() as f64 / (busy + idle).as_ps().max(1) as f64
    }

    pub(super) fn refill_batch(&self) -> u32 {
        self.profile.instructions.refill_batch
    }
}

/// Memory that a piece of work touches, one range after the other.
struct Touched<'a> {
    memory: &'a mut MemoryHierarchy,
    cycle: u64,
    stall: u64,
}

impl Touched<'_> {
    fn range(&mut self, address: u64, len: u32, write: bool) {
        let cost = self
            .memory
            .access(self.cycle + self.stall, address, len, write);
        self.stall += cost.stall_cycles();
    }

    fn descriptor(&mut self, ring: u64, slot: u32, len: u32, write: bool) {
        self.range(ring + u64::from(slot) * u64::from(len), len, write);
    }

    fn header(&mut self, buffer: u64, write: bool) {
        self.range(buffer, FRAME_HEADERS, write);
    }
}

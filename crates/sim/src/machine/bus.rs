//! The interconnect, and what its transfers are for.

use crate::config::{Experiment, Invalid, of_interconnect};
use baton_bus::interconnect::{
    DeviceId, Done, Interconnect, InterconnectConfig, Operation, Piece, Transfer, Usage,
};
use baton_bus::{BytesByCategory, Category};
use baton_wire::Time;
use std::cell::Cell;

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

/// What a device's transfer is for: its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Purpose {
    /// The driver tells of new descriptors.
    Doorbell,
    /// A NIC fetches descriptors.
    Descriptors,
    /// A NIC reads what it sends, or keeps.
    Data,
    /// A NIC writes what it received.
    Received,
    /// A NIC writes entries of the host's ring.
    Entries,
    /// A NIC fetches descriptors of receive buffers.
    Buffers,
    /// A device interrupts the host.
    Interrupt,
    /// The driver writes a register while it handles an interrupt.
    Register,
    /// The disks' controller writes what was read.
    Disk,
}

impl Purpose {
    const ALL: [Self; 9] = [
        Self::Doorbell,
        Self::Descriptors,
        Self::Data,
        Self::Received,
        Self::Entries,
        Self::Buffers,
        Self::Interrupt,
        Self::Register,
        Self::Disk,
    ];

    /// Of the transfer that is done.
    pub(super) fn of(done: &Done) -> Self {
        Self::ALL[done.tag as usize]
    }

    fn operation(self) -> Operation {
        match self {
            Self::Doorbell | Self::Register => Operation::RegisterWrite,
            Self::Descriptors | Self::Data | Self::Buffers => Operation::DmaRead,
            Self::Received | Self::Entries | Self::Disk => Operation::DmaWrite,
            Self::Interrupt => Operation::Interrupt,
        }
    }
}

/// The interconnect of a machine, where it takes time.
pub(super) struct Bus {
    model: Box<dyn Interconnect>,
    /// What the model says about the next transfer that is done; `None` when something has happened since it was asked.
    next_done: Cell<Option<Time>>,
    /// Tests see every transfer when it is done.
    #[cfg(test)]
    pub(super) sees_all: bool,
}

impl Bus {
    /// The interconnect of an experiment; none where it is ideal: then everything is where it should be at once.
    pub(super) fn new(experiment: &Experiment) -> Result<Option<Self>, Invalid> {
        if experiment.interconnect == InterconnectConfig::Ideal {
            return Ok(None);
        }
        // The disks' controller comes after the NICs.
        let devices = experiment.nics.count() as usize + 1;
        let model = experiment
            .interconnect
            .build(devices)
            .map_err(|error| of_interconnect(&error))?;
        Ok(Some(Self {
            model,
            next_done: Cell::new(None),
            #[cfg(test)]
            sees_all: false,
        }))
    }

    /// Whether to see every transfer when it is done.
    #[cfg(test)]
    pub(super) fn sees_all(&self) -> bool {
        self.sees_all
    }

    /// Whether to see every transfer when it is done.
    #[cfg(not(test))]
    pub(super) fn sees_all(&self) -> bool {
        false
    }

    /// Begins a transfer that somebody waits for.
    pub(super) fn submit(
        &mut self,
        now: Time,
        device: u8,
        purpose: Purpose,
        bytes: BytesByCategory,
    ) {
        self.begin(now, device, purpose, bytes, true);
    }

    /// Begins a transfer that nobody waits for.
    pub(super) fn submit_unreported(
        &mut self,
        now: Time,
        device: u8,
        purpose: Purpose,
        bytes: BytesByCategory,
    ) {
        self.begin(now, device, purpose, bytes, false);
    }

    fn begin(
        &mut self,
        now: Time,
        device: u8,
        purpose: Purpose,
        bytes: BytesByCategory,
        reported: bool,
    ) {
        self.next_done.set(None);
        self.model.submit(
            now,
            Transfer {
                device: DeviceId(device),
                operation: purpose.operation(),
                bytes,
                tag: purpose as u64,
                reported,
            },
        );
    }

    /// A device reads what it sends, or keeps.
    pub(super) fn read(&mut self, now: Time, device: u8, pieces: &[Piece]) {
        let tag = Purpose::Data as u64;
        self.next_done.set(None);
        self.model.submit_reads(now, DeviceId(device), pieces, tag);
    }

    /// The driver tells a device of new descriptors.
    pub(super) fn ring_doorbell(&mut self, now: Time, device: u8) {
        let bytes = BytesByCategory::of(Category::Other, REGISTER_BYTES);
        self.submit(now, device, Purpose::Doorbell, bytes);
    }

    /// The driver writes another register of a device.
    pub(super) fn write_register(&mut self, now: Time, device: u8) {
        let bytes = BytesByCategory::of(Category::Other, REGISTER_BYTES);
        self.submit_unreported(now, device, Purpose::Register, bytes);
    }

    /// A device interrupts the processor.
    pub(super) fn interrupt(&mut self, now: Time, device: u8) {
        self.submit(now, device, Purpose::Interrupt, BytesByCategory::default());
    }

    /// Lets time pass up to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        self.next_done.set(None);
        self.model.handle_timeout(now);
    }

    /// The next transfer that is done.
    pub(super) fn poll_done(&mut self) -> Option<Done> {
        self.model.poll_done()
    }

    /// No transfer is done before; [`Time::NEVER`] if nothing is under way. To be asked when all that is done has been taken.
    #[inline]
    pub(super) fn next_done(&self) -> Time {
        if let Some(at) = self.next_done.get() {
            return at;
        }
        let at = self.model.poll_timeout().unwrap_or(Time::NEVER);
        self.next_done.set(Some(at));
        at
    }

    /// How it was used since [`Bus::restart_counts`].
    pub(super) fn usage(&mut self, now: Time) -> Usage {
        self.model.handle_timeout(now);
        self.model.usage(now)
    }

    /// Begins to count anew.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.model.handle_timeout(now);
        self.model.restart_counts(now);
    }
}

//! What happens at the host: work begins and ends, descriptors go down, interrupts come up.

use super::bus::Purpose;
use super::tick::{NicTick, Tick};
use super::{Machine, crossings};
use baton_wire::{Span, Time};

impl Machine {
    /// Starts the host's next piece of work unless it is busy.
    pub(super) fn drive_host(&mut self) {
        while !self.host.busy {
            let Some(end) = self.host.work(self.now, &mut self.ports) else {
                break;
            };
            while let Some(change) = self.host.application.poll_change() {
                self.clients.note(change);
            }
            if end > self.now {
                self.host.busy = true;
                self.arm(Tick::HostDone, Some(end));
            }
            self.each_nic(Self::expect_descriptors);
            self.ask_disks(end);
        }
        if !self.host.busy {
            self.arm(Tick::HostTimer, self.host.poll_timeout());
        }
    }

    pub(super) fn host_done(&mut self) {
        self.host.busy = false;
        self.drive_host();
        // The handler may just have ended with entries still waiting, or room made for the NIC.
        self.each_nic(Self::request_interrupt);
        self.each_nic(Self::drive_nic);
    }

    fn each_nic(&mut self, act: impl Fn(&mut Self, u8)) {
        for nic in 0..self.ports.len() as u8 {
            act(self, nic);
        }
    }

    /// The driver has posted descriptors: they are on the NIC at once, or on their way to it.
    pub(super) fn descriptors_posted(&mut self, nic: u8) {
        if self.ports[nic as usize].dma.is_some() {
            self.ring_doorbell(nic);
            self.hand_in(nic);
            self.drive_nic(nic);
        } else {
            self.deliver_descriptors(nic);
        }
    }

    /// Hands the host's packets and commands that are posted by now to the NIC, in order, as far as its queues take them.
    pub(super) fn deliver_descriptors(&mut self, nic: u8) {
        let port = &mut self.ports[nic as usize];
        let (outbox, firmware) = (&mut port.outbox, &mut port.nic.firmware);
        while let Some(descriptor) = outbox.take(self.now, |next| firmware.accepts(next)) {
            crossings::count_descriptor(&descriptor, &mut self.crossings);
            firmware.handle_accepted(self.now, descriptor);
        }
        self.expect_descriptors(nic);
        self.drive_nic(nic);
    }

    /// Looks forward to the next descriptor for which the NIC may have room, or of which it does not know.
    pub(super) fn expect_descriptors(&mut self, nic: u8) {
        let port = &self.ports[nic as usize];
        let next = match &port.dma {
            None => port.outbox.next(),
            Some(dma) => dma.descriptors.unknown(&port.outbox),
        };
        self.arm(Tick::Nic(NicTick::Descriptors, nic), next);
    }

    // --- disks ---

    /// Hands the disks what the kernel asked of them by `now`.
    fn ask_disks(&mut self, now: Time) {
        while let Some(read) = self.host.kernel.poll_disk() {
            self.storage.submit(now, read);
            self.arm(Tick::Disk, self.storage.next_done());
        }
    }

    pub(super) fn disk_done(&mut self) {
        let now = self.now;
        while let Some(fetched) = self.storage.poll_read(now) {
            if let Some(offload) = &mut self.offload {
                offload.write_from_disk(now, fetched.into(), fetched.traffic());
                continue;
            }
            match &mut self.bus {
                None => self.host.disk_interrupt(fetched.into()),
                Some(bus) => {
                    let controller = self.ports.len() as u8;
                    bus.submit(now, controller, Purpose::Disk, fetched.traffic());
                    self.storage.cross(fetched);
                }
            }
        }
        self.arm(Tick::Disk, self.storage.next_done());
        self.drive_host();
        self.expect_offload();
    }

    pub(super) fn disk_data_in_memory(&mut self) {
        let fetched = self.storage.crossed();
        self.host.disk_interrupt(fetched.into());
        self.drive_host();
    }

    // --- interrupts ---

    /// Interrupts the host now or arms the coalescing timer.
    pub(super) fn request_interrupt(&mut self, nic: u8) {
        let port = &self.ports[nic as usize];
        let waiting = port.ring.len();
        if waiting == 0 || !self.host.takes_interrupts(nic) {
            return;
        }
        if port.dma.is_some() {
            // Entries were held back before they were written: now they are here.
            self.send_interrupt(nic);
            return;
        }
        if waiting >= port.nic.interrupt_count || port.nic.interrupt_delay == Span::ZERO {
            self.interrupt_due(nic);
        } else {
            let due = self.now + port.nic.interrupt_delay;
            self.arm(Tick::Nic(NicTick::Interrupt, nic), Some(due));
        }
    }

    pub(super) fn interrupt_due(&mut self, nic: u8) {
        self.timetable.disarm(Tick::Nic(NicTick::Interrupt, nic));
        if self.ports[nic as usize].dma.is_some() {
            self.flush_entries(nic);
            return;
        }
        if !self.ports[nic as usize].ring.is_empty() && self.host.takes_interrupts(nic) {
            self.host.raise_interrupt(nic);
            self.drive_host();
        }
    }
}

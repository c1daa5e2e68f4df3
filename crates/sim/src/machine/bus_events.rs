//! What happens on the interconnect, where that takes time.

#[cfg(test)]
mod tests;

use super::bus::{Bus, Purpose};
use super::dma::{Dma, Parts, Release, Write};
use super::outbox::{Outbox, Stage};
use super::port::Port;
use super::tick::{NicTick, Tick};
use super::{Machine, crossings};
use baton_bus::handoff::ToHost;
use baton_bus::interconnect::Done;
use baton_bus::{BytesByCategory, Category, Ring};
use baton_wire::{Span, Symbolic, Time};

/// A NIC's rings and transfers, and the interconnect that they use.
struct OnBus<'a> {
    dma: &'a mut Dma,
    outbox: &'a mut Outbox,
    ring: &'a Ring<ToHost<Symbolic>>,
    bus: &'a mut Bus,
}

impl Machine {
    /// When to look at the interconnect, if that is before `next`, when something else happens. What is done there is seen late
    /// where it causes nothing that must be known before then: most transfers need no event of their own.
    #[inline]
    pub(super) fn next_transfer(&self, next: Time) -> Option<Time> {
        let bus = self.bus.as_ref()?;
        let done = bus.next_done();
        if done >= next {
            return None;
        }
        if bus.sees_all() {
            return Some(done);
        }
        let seen = done.max(self.lookahead());
        (seen < next).then_some(seen)
    }

    /// Until when nothing that is done on the interconnect needs to be seen.
    fn lookahead(&self) -> Time {
        if self.storage.is_crossing() {
            return Time::ZERO;
        }
        let ports = self.ports.iter();
        ports.fold(Time::NEVER, |first, port| {
            first.min(port.lookahead(self.now))
        })
    }

    /// Lets time pass up to `time`: transfers that are done by then take effect, each at its own time.
    #[inline]
    pub(super) fn see_transfers(&mut self, time: Time) {
        debug_assert!(time >= self.now, "time runs forward");
        if let Some(bus) = &mut self.bus
            && bus.next_done() <= time
        {
            bus.advance(time);
            while let Some(done) = self.bus.as_mut().and_then(Bus::poll_done) {
                self.now = done.at;
                self.transfer_done(&done);
            }
        }
        self.now = time;
    }

    fn transfer_done(&mut self, done: &Done) {
        let nic = done.device.0;
        match Purpose::of(done) {
            Purpose::Doorbell => {
                if let Some(OnBus { dma, outbox, .. }) = self.on_bus(nic) {
                    dma.descriptors.rung(outbox);
                }
                self.fetch_descriptors(nic);
                self.ring_doorbell(nic);
            }
            Purpose::Descriptors => {
                if let Some(OnBus { dma, outbox, .. }) = self.on_bus(nic) {
                    dma.descriptors.arrived(outbox);
                }
                self.hand_in(nic);
                self.fetch_descriptors(nic);
                self.drive_nic(nic);
            }
            Purpose::Data => {
                let now = self.now;
                let dma = self.dma(nic);
                let complete = dma.outgoing.read_done(now);
                if complete {
                    self.release(nic);
                }
                self.pump(nic);
                if complete {
                    self.hand_in(nic);
                    self.drive_nic(nic);
                }
            }
            Purpose::Received => {
                let delay = self.ports[nic as usize].nic.interrupt_delay;
                let now = self.now;
                self.dma(nic).upward.data_written(now, delay);
                self.pump(nic);
                self.drive_nic(nic);
            }
            Purpose::Entries => {
                self.entries_written(nic);
                self.pump(nic);
                self.request_interrupt(nic);
            }
            Purpose::Interrupt => self.interrupt_arrived(nic),
            Purpose::Disk => self.disk_data_in_memory(),
            Purpose::Buffers | Purpose::Register => {
                debug_assert!(false, "nobody waits for it");
            }
        }
    }

    /// The transfers of a NIC; only asked for where there are some.
    fn dma(&mut self, nic: u8) -> &mut Dma {
        self.ports[nic as usize]
            .dma
            .as_mut()
            .expect("there is an interconnect that takes time")
    }

    fn on_bus(&mut self, nic: u8) -> Option<OnBus<'_>> {
        let port = &mut self.ports[nic as usize];
        Some(OnBus {
            dma: port.dma.as_mut()?,
            outbox: &mut port.outbox,
            ring: &port.ring,
            bus: self.bus.as_mut()?,
        })
    }

    // --- from the host ---

    /// The driver tells the NIC of what it has posted.
    pub(super) fn ring_doorbell(&mut self, nic: u8) {
        let now = self.now;
        let Some(OnBus {
            dma, outbox, bus, ..
        }) = self.on_bus(nic)
        else {
            return;
        };
        match dma.descriptors.unknown(outbox) {
            Some(posted) if posted <= now => {
                dma.descriptors.ring(outbox, now);
                bus.ring_doorbell(now, nic);
            }
            later => self.arm(Tick::Nic(NicTick::Descriptors, nic), later),
        }
    }

    /// Fetches more descriptors if the NIC knows of some and may.
    #[inline]
    fn fetch_descriptors(&mut self, nic: u8) {
        let Port { dma, outbox, .. } = &self.ports[nic as usize];
        if dma.as_ref().is_some_and(|dma| dma.may_fetch(outbox)) {
            self.begin_to_fetch(nic);
        }
    }

    fn begin_to_fetch(&mut self, nic: u8) {
        let now = self.now;
        let Some(OnBus {
            dma, outbox, bus, ..
        }) = self.on_bus(nic)
        else {
            return;
        };
        let entry_bytes = dma.config.descriptor_bytes;
        let most = dma.config.descriptors_per_fetch;
        let entries = dma.descriptors.fetch(outbox, most, |descriptor| {
            crossings::ring_entries(descriptor, entry_bytes)
        });
        let bytes = of_descriptors(entries, entry_bytes);
        bus.submit(now, nic, Purpose::Descriptors, bytes);
    }

    /// Hands descriptors that are on the NIC to the firmware, as far as there is room for their packets.
    #[inline]
    pub(super) fn hand_in(&mut self, nic: u8) {
        let port = &self.ports[nic as usize];
        let waits = port.outbox.reached(Stage::OnNic) > 0;
        if waits && port.dma.as_ref().is_some_and(|dma| !port.is_full(dma)) {
            self.hand_in_waiting(nic);
        }
    }

    fn hand_in_waiting(&mut self, nic: u8) {
        let now = self.now;
        let port = &mut self.ports[nic as usize];
        let mut taken = false;
        while let Some(dma) = &port.dma
            && !port.is_full(dma)
        {
            let room_at = dma.room_at(port.to_clients.free_at());
            if room_at > now {
                self.arm(Tick::Nic(NicTick::Descriptors, nic), Some(room_at));
                break;
            }
            let firmware = &mut port.nic.firmware;
            let Some(descriptor) = port.outbox.take_on_nic(|next| firmware.accepts(next)) else {
                break;
            };
            crossings::count_descriptor(&descriptor, &mut self.crossings);
            firmware.handle_accepted(now, descriptor);
            taken = true;
        }
        if taken {
            self.fetch_descriptors(nic);
        }
    }

    // --- from the NIC ---

    /// A piece of work of the NIC is over: its frames wait for their data, what it tells the host is to be written.
    pub(super) fn take_nic_output(&mut self, nic: u8) {
        let now = self.now;
        let port = &mut self.ports[nic as usize];
        if !port.nic.firmware.has_output() {
            return;
        }
        let delay = port.nic.interrupt_delay;
        let Some(dma) = &mut port.dma else { return };
        let mut parts = Parts::new();
        let mut release = Release::default();
        let mut offloaded = false;
        // It must be known that they leave before the first can have crossed the wire.
        let mut needed = Time::NEVER;
        while let Some(frame) = port.nic.firmware.poll_frame() {
            offloaded |= frame.host_since.is_none();
            if frame.is_read {
                crossings::push_packet(&frame.segment, &mut parts);
            }
            let first = release.frames == 0;
            let frame_len = dma.outgoing.keep(frame, &mut release);
            if first {
                needed = port.to_clients.earliest_arrival(now, frame_len);
            }
        }
        self.packets += release.frames as u64;
        while let Some(read) = port.nic.firmware.poll_read() {
            crossings::push_parts(&read, &mut parts);
            if offloaded {
                crossings::of_read(&read).count(&mut self.crossings);
            }
        }
        while let Some(upcall) = port.nic.firmware.poll_upcall() {
            let crossing = crossings::of_upcall(&upcall.item);
            crossing.count(&mut self.crossings);
            if let Some(since) = upcall.host_since {
                port.nic.host_packets += 1;
                port.nic.receive_delay.record(now - since);
            }
            match upcall.item {
                ToHost::Sent(packets) => release.sent += packets,
                item => {
                    dma.buffers_used += u32::from(matches!(item, ToHost::Packet(_)));
                    dma.upward.push(now, item, crossing.has_data(), delay);
                }
            }
        }
        if release.sent > 0 {
            // What was sent is reported later.
            needed = needed.min(now + Span::from_us(dma.config.sent_delay_us));
        }
        if !parts.is_empty() || !release.is_empty() {
            dma.outgoing.push(parts, release, needed);
        }
        if dma.outgoing.is_complete() {
            self.release(nic);
        }
        self.pump(nic);
    }

    /// Puts frames whose data is there on the wire.
    fn release(&mut self, nic: u8) {
        let now = self.now;
        let port = &mut self.ports[nic as usize];
        let Some(dma) = &mut port.dma else { return };
        while let Some(release) = dma.outgoing.pop_complete() {
            for _ in 0..release.frames {
                let (frame_len, frame) = dma.outgoing.next_frame();
                match frame.host_since {
                    Some(since) => {
                        port.nic.host_packets += 1;
                        port.nic.send_delay.record(now - since);
                    }
                    None => port.nic.nic_packets_sent += 1,
                }
                self.taps.frame(now, &frame.segment);
                port.to_clients.send(now, frame_len, frame.segment);
            }
            dma.upward.sent(now, release.sent);
        }
        let arrival = port.to_clients.next_arrival();
        self.arm(Tick::Nic(NicTick::AtClients, nic), arrival);
    }

    /// Begins as many transfers as may be under way.
    #[inline]
    pub(super) fn pump(&mut self, nic: u8) {
        let Some(dma) = &self.ports[nic as usize].dma else {
            return;
        };
        if dma.wants_bus() {
            self.begin_transfers(nic);
        } else {
            let due = dma.upward.due();
            self.arm(Tick::Nic(NicTick::Interrupt, nic), due);
        }
    }

    fn begin_transfers(&mut self, nic: u8) {
        let now = self.now;
        let Some(OnBus { dma, bus, .. }) = self.on_bus(nic) else {
            return;
        };
        while let Some(pieces) = dma.outgoing.next_reads(now) {
            bus.read(now, nic, pieces);
        }
        while let Some(write) = dma.upward.next_write(now) {
            match write {
                Write::Data(bytes) => bus.submit(now, nic, Purpose::Received, bytes),
                Write::Entries(bytes) => bus.submit(now, nic, Purpose::Entries, bytes),
            }
        }
        let batch = dma.config.buffers_per_fetch;
        while dma.buffers_used >= batch {
            dma.buffers_used -= batch;
            let bytes = of_descriptors(batch, dma.config.event_bytes);
            bus.submit_unreported(now, nic, Purpose::Buffers, bytes);
        }
        let due = dma.upward.due();
        let ready = dma.outgoing.engine_at(now);
        self.arm(Tick::Nic(NicTick::Interrupt, nic), due);
        self.arm(Tick::Nic(NicTick::Engine, nic), ready);
    }

    // --- to the host ---

    /// Entries have waited long enough.
    pub(super) fn flush_entries(&mut self, nic: u8) {
        let now = self.now;
        let upward = &mut self.dma(nic).upward;
        if upward.due().is_some_and(|due| due <= now) {
            upward.flush();
        }
        self.pump(nic);
    }

    fn entries_written(&mut self, nic: u8) {
        let Port { dma, ring, .. } = &mut self.ports[nic as usize];
        let Some(dma) = dma else { return };
        for item in dma.upward.entries_written() {
            let pushed = ring.try_push(item);
            assert!(
                pushed.is_ok(),
                "the NIC leaves room in the ring before it works"
            );
        }
    }

    /// Sends the host an interrupt unless one is on its way.
    pub(super) fn send_interrupt(&mut self, nic: u8) {
        let now = self.now;
        if let Some(OnBus { dma, bus, .. }) = self.on_bus(nic)
            && !std::mem::replace(&mut dma.interrupting, true)
        {
            bus.interrupt(now, nic);
        }
    }

    fn interrupt_arrived(&mut self, nic: u8) {
        let now = self.now;
        let Some(OnBus { dma, ring, bus, .. }) = self.on_bus(nic) else {
            return;
        };
        dma.interrupting = false;
        let any = !ring.is_empty();
        for _ in 0..dma.config.interrupt_register_writes {
            bus.write_register(now, nic);
        }
        if any && self.host.takes_interrupts(nic) {
            self.host.raise_interrupt(nic);
            self.drive_host();
        }
    }
}

/// What a fetch of so many descriptors transfers.
fn of_descriptors(count: u32, bytes_each: u32) -> BytesByCategory {
    BytesByCategory::of(
        Category::Descriptor,
        u64::from(count) * u64::from(bytes_each),
    )
}

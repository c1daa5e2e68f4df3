//! What happens at a NIC, on its wire, and at the clients.

use super::tick::{NicTick, Tick};
use super::{Machine, Violation, crossings, subnets};

/// Room that the ring to the host must have before the NIC starts a piece of work: more than one piece can fill.
pub(crate) const HOST_RING_RESERVE: usize = 64;

impl Machine {
    /// Starts the NIC's next piece of work unless it is busy or the ring to the host is nearly full.
    #[inline]
    pub(super) fn drive_nic(&mut self, nic: u8) {
        if !self.ports[nic as usize].nic.busy {
            self.start_nic(nic);
        }
    }

    fn start_nic(&mut self, nic: u8) {
        loop {
            let port = &mut self.ports[nic as usize];
            if !port.has_room() {
                break;
            }
            let Some(end) = port.nic.work(self.now) else {
                break;
            };
            if end > self.now {
                port.nic.busy = true;
                self.arm(Tick::Nic(NicTick::Done, nic), Some(end));
                break;
            }
            self.release_nic_output(nic);
        }
        // A timer that is due while the NIC is busy becomes work that waits its turn.
        let timer = self.ports[nic as usize].nic.firmware.poll_timeout();
        self.arm(Tick::Nic(NicTick::Timer, nic), timer);
    }

    pub(super) fn nic_done(&mut self, nic: u8) {
        let port = &mut self.ports[nic as usize];
        port.nic.busy = false;
        self.release_nic_output(nic);
        let port = &mut self.ports[nic as usize];
        let waited = port.outbox.retry();
        if port.dma.is_some() {
            self.hand_in(nic);
        } else if waited {
            self.deliver_descriptors(nic);
        }
        self.drive_nic(nic);
    }

    /// Puts the NIC's frames on the wire and its descriptors into host memory.
    fn release_nic_output(&mut self, nic: u8) {
        if self.ports[nic as usize].dma.is_some() {
            self.take_nic_output(nic);
            return;
        }
        let now = self.now;
        let port = &mut self.ports[nic as usize];
        while let Some(frame) = port.nic.firmware.poll_frame() {
            self.packets += 1;
            match frame.host_since {
                Some(since) => {
                    port.nic.count_host_packet_sent(now - since);
                }
                None => {
                    port.nic.nic_packets_sent += 1;
                    crossings::of_offloaded_data(&frame.segment).count(&mut self.crossings);
                }
            }
            self.taps.frame(now, &frame.segment);
            port.to_clients
                .send(now, frame.segment.frame_len(), frame.segment);
        }
        while let Some(upcall) = port.nic.firmware.poll_upcall() {
            if let Some(since) = upcall.host_since {
                port.nic.count_host_packet_received(now - since);
            }
            crossings::of_upcall(&upcall.item).count(&mut self.crossings);
            let pushed = port.ring.try_push(upcall.item);
            assert!(
                pushed.is_ok(),
                "the NIC leaves room in the ring before it works"
            );
        }
        let arrival = port.to_clients.next_arrival();
        self.arm(Tick::Nic(NicTick::AtClients, nic), arrival);
        self.request_interrupt(nic);
    }

    // --- wire and clients ---

    pub(super) fn frame_at_nic(&mut self, nic: u8) {
        let port = &mut self.ports[nic as usize];
        while let Some(segment) = port.to_nic.receive(self.now) {
            self.packets += 1;
            self.taps.frame(self.now, &segment);
            match &mut self.offload {
                Some(offload) => offload.receive(self.now, nic, &segment),
                // A drop is counted by the firmware with its reason.
                None => drop(port.nic.firmware.handle_frame(self.now, segment)),
            }
        }
        let arrival = port.to_nic.next_arrival();
        self.arm(Tick::Nic(NicTick::AtNic, nic), arrival);
        if self.offload.is_some() {
            self.expect_offload();
        } else {
            self.drive_nic(nic);
        }
    }

    pub(super) fn frame_at_clients(&mut self, nic: u8) -> Result<(), Violation> {
        let port = &mut self.ports[nic as usize];
        while let Some(segment) = port.to_clients.receive(self.now) {
            self.clients.handle_segment(self.now, segment)?;
        }
        let arrival = port.to_clients.next_arrival();
        self.arm(Tick::Nic(NicTick::AtClients, nic), arrival);
        self.clients_acted();
        Ok(())
    }

    pub(super) fn clients_acted(&mut self) {
        while let Some(segment) = self.clients.poll_transmit(self.now) {
            let nic = subnets::nic_of(segment.dst.addr);
            let wire = &mut self.ports[nic as usize].to_nic;
            wire.send(self.now, segment.frame_len(), segment);
        }
        for nic in 0..self.ports.len() as u8 {
            let arrival = self.ports[nic as usize].to_nic.next_arrival();
            self.arm(Tick::Nic(NicTick::AtNic, nic), arrival);
        }
        self.arm(Tick::ClientTimer, self.clients.poll_timeout());
    }
}

//! What happens on the wires, and at the clients.

use super::tick::{NicTick, Tick};
use super::{Machine, Violation, subnets};

impl Machine {
    pub(super) fn frame_at_nic(&mut self, nic: u8) -> Result<(), Violation> {
        let port = &mut self.ports[usize::from(nic)];
        while let Some(segment) = port.to_nic.receive(self.now) {
            self.packets += 1;
            self.taps.frame(self.now, &segment);
            self.server.receive(self.now, nic, &segment)?;
        }
        let arrival = port.to_nic.next_arrival();
        self.arm(Tick::Nic(NicTick::AtNic, nic), arrival);
        self.expect_server();
        Ok(())
    }

    pub(super) fn frame_at_clients(&mut self, nic: u8) -> Result<(), Violation> {
        let port = &mut self.ports[usize::from(nic)];
        while let Some(segment) = port.to_clients.receive(self.now) {
            self.clients.handle_segment(self.now, segment)?;
        }
        let arrival = port.to_clients.next_arrival();
        self.arm(Tick::Nic(NicTick::AtClients, nic), arrival);
        self.clients_acted();
        Ok(())
    }

    pub(super) fn clients_acted(&mut self) {
        while let Some((from, enqueues)) = self.clients.poll_opened() {
            self.server.foresee(from, enqueues);
        }
        while let Some(segment) = self.clients.poll_transmit(self.now) {
            let nic = subnets::nic_of(segment.dst.addr);
            let wire = &mut self.ports[usize::from(nic)].to_nic;
            wire.send(self.now, segment.frame_len(), segment);
        }
        for nic in 0..self.ports.len() as u8 {
            let arrival = self.ports[usize::from(nic)].to_nic.next_arrival();
            self.arm(Tick::Nic(NicTick::AtNic, nic), arrival);
        }
        self.arm(Tick::ClientTimer, self.clients.poll_timeout());
    }
}

//! Events on the wires and at the clients.

use super::capture::LOST_ON_WIRE;
use super::tick::{NicTick, Tick};
use super::{Machine, Violation, subnets};
use baton_timeline::Way;

impl Machine {
    pub(super) fn frame_at_nic(&mut self, nic: u8) -> Result<(), Violation> {
        let port = &mut self.ports[usize::from(nic)];
        while let Some(segment) = port.to_nic.receive(self.now) {
            self.taps.frame(self.now, Way::In, &segment);
            (self.server).receive(self.now, (nic, &mut *port), segment, &mut self.taps)?;
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
            let client = self.taps.recorder().map(|_| segment.src);
            let wire = &mut self.ports[usize::from(nic)].to_nic;
            let arrives = wire.send(self.now, segment.frame_len(), segment);
            if let (false, Some(client)) = (arrives, client) {
                self.taps.lost(self.now, client, LOST_ON_WIRE);
            }
        }
        for nic in 0..self.ports.len() as u8 {
            let arrival = self.ports[usize::from(nic)].to_nic.next_arrival();
            self.arm(Tick::Nic(NicTick::AtNic, nic), arrival);
        }
        self.arm(Tick::ClientTimer, self.clients.poll_timeout());
    }
}

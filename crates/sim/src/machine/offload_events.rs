//! What happens to sockets on adapters.

use super::offload::Offload;
use super::tick::{NicTick, Tick};
use super::{Machine, Violation};

impl Machine {
    /// Looks forward to what happens next to sockets on adapters, if there are any.
    pub(super) fn expect_offload(&mut self) {
        let next = self.offload.as_ref().map(Offload::due);
        self.arm(Tick::Offload, next);
    }

    pub(super) fn offload_due(&mut self) -> Result<(), Violation> {
        let now = self.now;
        let Some(offload) = &mut self.offload else {
            return Ok(());
        };
        let (taps, packets) = (&mut self.taps, &mut self.packets);
        let before = *packets;
        offload.handle_timeout(now, &mut self.host, &mut self.ports, |segment| {
            *packets += 1;
            taps.frame(now, segment);
        })?;
        while let Some(change) = offload.poll_change() {
            self.clients.note(change);
        }
        let have_left = *packets > before;
        while let Some(read) = self.offload.as_mut().and_then(Offload::poll_disk) {
            self.storage.submit(now, read);
            self.arm(Tick::Disk, self.storage.next_done());
        }
        if have_left {
            for nic in 0..self.ports.len() as u8 {
                let arrival = self.ports[usize::from(nic)].to_clients.next_arrival();
                self.arm(Tick::Nic(NicTick::AtClients, nic), arrival);
            }
        }
        self.expect_offload();
        Ok(())
    }
}

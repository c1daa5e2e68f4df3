//! Events of the host, of the adapters, and of the links between them.

use super::tick::{NicTick, Tick};
use super::{Machine, Violation};

impl Machine {
    /// Schedules the next event of the server.
    pub(super) fn expect_server(&mut self) {
        self.arm(Tick::Server, Some(self.server.due()));
    }

    #[inline(never)]
    pub(super) fn server_due(&mut self) -> Result<(), Violation> {
        let now = self.now;
        let before = self.taps.frames();
        let (host, ports) = (&mut self.host, &mut self.ports);
        let due = (self.server).handle_timeout(now, host, ports, &mut self.taps)?;
        if let Some(recorder) = self.taps.recorder() {
            while let Some(transfer) = self.server.poll_transfer() {
                recorder.crossed(&transfer);
            }
        }
        while let Some(change) = self.server.poll_change() {
            self.clients.note(change);
        }
        let have_left = self.taps.frames() > before;
        while let Some(read) = self.server.poll_disk() {
            self.storage.submit(now, read);
            self.arm(Tick::Disk, self.storage.next_done());
        }
        if have_left {
            for nic in 0..self.ports.len() as u8 {
                let arrival = self.ports[usize::from(nic)].to_clients.next_arrival();
                self.arm(Tick::Nic(NicTick::AtClients, nic), arrival);
            }
        }
        self.arm(Tick::Server, Some(due));
        Ok(())
    }

    /// Handles disk reads that are done, whose data goes into the host's memory.
    pub(super) fn disk_done(&mut self) -> Result<(), Violation> {
        let now = self.now;
        while let Some(fetched) = self.storage.poll_read(now) {
            (self.server).write_from_disk(now, fetched.token, fetched.traffic())?;
        }
        self.arm(Tick::Disk, self.storage.next_done());
        self.expect_server();
        Ok(())
    }
}

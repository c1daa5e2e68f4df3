//! What happens to sockets on the adapter.

use super::tick::{NicTick, Tick};
use super::{Machine, Violation};

/// The adapter, where sockets are on one.
const ADAPTER: u8 = 0;

impl Machine {
    /// Looks forward to what happens next to sockets on the adapter, if there are any.
    pub(super) fn expect_offload(&mut self) {
        let next = self
            .offload
            .as_ref()
            .and_then(|offload| offload.poll_timeout());
        self.arm(Tick::Offload, next);
    }

    pub(super) fn offload_due(&mut self) -> Result<(), Violation> {
        let now = self.now;
        let (Some(offload), port) = (&mut self.offload, &mut self.ports[ADAPTER as usize]) else {
            return Ok(());
        };
        let (taps, packets, wire) = (&mut self.taps, &mut self.packets, &mut port.to_clients);
        let mut sent = 0;
        offload.handle_timeout(now, &mut self.host, &mut port.nic, |segment| {
            sent += 1;
            taps.frame(now, &segment);
            wire.send(now, segment.frame_len(), segment);
        })?;
        *packets += sent;
        while let Some(change) = offload.poll_change() {
            self.clients.note(change);
        }
        while let Some(read) = offload.poll_disk() {
            self.storage.submit(now, read);
        }
        let arrival = port.to_clients.next_arrival();
        self.arm(Tick::Disk, self.storage.next_done());
        self.arm(Tick::Nic(NicTick::AtClients, ADAPTER), arrival);
        self.expect_offload();
        Ok(())
    }
}

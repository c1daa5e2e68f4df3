//! A reset of the data path: the engines that move packets, and the memory behind them.

use super::{Firmware, Upcall};
use crate::cache::assembly::Assembly;
use crate::cache::region::Storable;
use crate::stats::Drop;
use baton_bus::handoff::{Event, ToHost};

impl<P: Storable> Firmware<P> {
    /// Resets the data path, as `ethtool --reset` does for the components dma, mac and ram: packets that wait, in either direction,
    /// are lost, and the data cache with all commands for it. Connections on the NIC stay, with their commands, as the component
    /// offload does: their state has no second copy. TCP sends again what was lost.
    ///
    /// The host learns of it by [`Event::Reset`], to be taken from [`Firmware::poll_upcall`], and must start the cache again.
    pub fn reset(&mut self) {
        let queues = &mut self.queues;
        for queue in [
            &mut queues.arrivals,
            &mut queues.host_receive,
            &mut queues.nic_receive,
        ] {
            while let Some(packet) = queue.pop() {
                self.memory.free_packet(packet.bytes);
                self.stats.dropped.count(Drop::Reset);
            }
        }
        while let Some(work) = self.queues.host_send.pop() {
            self.sent += u32::from(work.is_packet());
        }
        // Of a packet in parts the last part is still to come, and will be refused.
        self.assembly = Assembly::Between;
        self.cache.forget();
        self.stats.resets += 1;
        let sent = std::mem::take(&mut self.sent);
        let told = (sent > 0).then_some(ToHost::Sent(sent));
        let reset = ToHost::Event(Event::Reset);
        for item in told.into_iter().chain([reset]) {
            self.upcalls.push(Upcall {
                item,
                host_since: None,
            });
        }
    }
}

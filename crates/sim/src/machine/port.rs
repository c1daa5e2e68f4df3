//! A NIC where it is plugged in: its rings in host memory, its wires, its place in the time series.

use super::dma::Dma;
use super::nic_events::HOST_RING_RESERVE;
use super::nic_side::NicSide;
use super::outbox::Outbox;
use crate::config::{Experiment, Invalid};
use crate::hardware::Wire;
use baton_bus::Ring;
use baton_bus::handoff::ToHost;
use baton_bus::interconnect::InterconnectConfig;
use baton_tcp::Segment;
use baton_wire::{Symbolic, Time};

/// One of the server's NICs with all that is its own.
pub(super) struct Port {
    pub(super) nic: NicSide,
    /// Packets and events that the NIC has put into host memory.
    pub(super) ring: Ring<ToHost<Symbolic>>,
    /// Packets and commands for the NIC.
    pub(super) outbox: Outbox,
    /// What it has on the interconnect, where that takes time.
    pub(super) dma: Option<Dma>,
    pub(super) to_nic: Wire<Segment<Symbolic>>,
    pub(super) to_clients: Wire<Segment<Symbolic>>,
}

impl Port {
    /// The NIC of this number, quiet.
    pub(super) fn new(experiment: &Experiment, number: u8) -> Result<Self, Invalid> {
        let seed = experiment.run.nic_seed(number);
        let takes_time = experiment.interconnect != InterconnectConfig::Ideal;
        let wire = |salt: u64| {
            Wire::new(&experiment.wire, seed ^ salt).map_err(|e| Invalid::from(e.within("wire")))
        };
        let mut nic = NicSide::new(experiment, seed)?;
        if takes_time {
            nic.firmware.note_reads();
        }
        Ok(Self {
            nic,
            ring: Ring::new(experiment.host.kernel.receive_ring_entries as usize),
            outbox: Outbox::default(),
            dma: takes_time.then(|| {
                Dma::new(
                    &experiment.nic.dma,
                    experiment.nic.interrupt.count,
                    experiment.wire.rate_mbps,
                )
            }),
            to_nic: wire(1)?,
            to_clients: wire(2)?,
        })
    }
}

impl Port {
    /// Whether the NIC may do a piece of work: there is room for what comes of it.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        match &self.dma {
            None => self.ring.free() > HOST_RING_RESERVE,
            Some(dma) => dma.has_room() && self.ring.free() > HOST_RING_RESERVE + dma.upward.len(),
        }
    }

    /// Whether the NIC holds as many packets as it may, those that wait for their data among them.
    #[inline]
    pub(super) fn is_full(&self, dma: &Dma) -> bool {
        let inside = self.nic.firmware.queue_lengths().host_send + dma.outgoing.len();
        inside >= dma.config.packets_in_flight as usize
    }

    /// Until when it need not be seen what is done on the interconnect: what happens there takes effect at its own time, even if
    /// that is seen later.
    #[inline]
    pub(super) fn lookahead(&self, now: Time) -> Time {
        let Some(dma) = &self.dma else {
            return Time::NEVER;
        };
        let at_rest = !self.nic.busy;
        if dma.interrupting || (at_rest && !self.has_room()) {
            return Time::ZERO;
        }
        let delay = self.nic.interrupt_delay;
        let lookahead = dma.lookahead(&self.outbox, delay);
        // What is handed to the firmware now may make it work, and the machine look forward to room in the transmit buffer.
        if lookahead > now
            && dma.hands_in(&self.outbox)
            && (at_rest || !self.has_room_to_send(dma, now))
        {
            return Time::ZERO;
        }
        lookahead
    }

    /// Whether the transmit buffer has room for more, even when all that waits has gone to it.
    fn has_room_to_send(&self, dma: &Dma, now: Time) -> bool {
        let waiting = self.to_clients.time_to_send(dma.outgoing.line_bytes());
        dma.room_at(self.to_clients.free_at() + waiting) <= now
    }
}

//! A port of the server: a NIC's processor and its wires.

use super::capture::{LOST_ON_WIRE, Taps};
use super::nic_processor::NicProcessor;
use crate::config::{Experiment, Invalid};
use crate::hardware::Wire;
use baton_tcp::Segment;
use baton_timeline::Way;
use baton_wire::{Symbolic, Time};

/// One of the server's NICs with its own processor and wires.
pub(super) struct Port {
    pub(super) nic: NicProcessor,
    pub(super) to_nic: Wire<Segment<Symbolic>>,
    pub(super) to_clients: Wire<Segment<Symbolic>>,
}

impl Port {
    /// Creates the NIC with this number, without any activity.
    pub(super) fn new(experiment: &Experiment, number: u8) -> Result<Self, Invalid> {
        let seed = experiment.run.nic_seed(number);
        let wire = |salt: u64| {
            Wire::new(&experiment.wire, seed ^ salt).map_err(|e| Invalid::from(e.within("wire")))
        };
        Ok(Self {
            nic: NicProcessor::new(experiment)?,
            to_nic: wire(1)?,
            to_clients: wire(2)?,
        })
    }

    /// Sends a frame to the clients.
    #[inline]
    pub(super) fn send(&mut self, now: Time, segment: Segment<Symbolic>, taps: &mut Taps) {
        taps.frame(now, Way::Out, &segment);
        if !self.to_clients.send(now, segment.frame_len(), segment) {
            taps.lost_last(now, LOST_ON_WIRE);
        }
    }
}

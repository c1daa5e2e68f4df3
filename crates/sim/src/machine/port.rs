//! A port of the server: a NIC's processor and its wires.

use super::capture::{LOST_ON_WIRE, Taps};
use super::hardware::Hardware;
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
    /// What is between the wires and the adapter's process, if it takes time or has limits.
    pub(super) hardware: Option<Box<Hardware>>,
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
            hardware: experiment
                .nic
                .hardware
                .as_deref()
                .map(|config| Box::new(Hardware::new(config))),
        })
    }

    /// Sends a frame of the adapter.
    #[inline]
    pub(super) fn send(&mut self, now: Time, segment: Segment<Symbolic>, taps: &mut Taps) {
        let to_clients = &mut self.to_clients;
        if let Some(hardware) = &mut self.hardware {
            return hardware.send(now, segment, to_clients, taps);
        }
        taps.frame(now, Way::Out, &segment);
        if !to_clients.send(now, segment.frame_len(), segment) {
            taps.lost_last(now, LOST_ON_WIRE);
        }
    }

    /// Returns whether the adapter must not send more frames now.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.hardware
            .as_ref()
            .is_some_and(|hardware| hardware.is_full())
    }
}

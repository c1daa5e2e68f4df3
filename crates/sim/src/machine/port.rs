//! A NIC where it is plugged in: its rings in host memory, its wires, its place in the time series.

use super::nic_side::NicSide;
use super::outbox::Outbox;
use crate::config::{Experiment, Invalid};
use crate::hardware::Wire;
use baton_bus::Ring;
use baton_nic::ToHost;
use baton_tcp::{Segment, Symbolic};

/// One of the server's NICs with all that is its own.
pub(super) struct Port {
    pub(super) nic: NicSide,
    /// Packets and events that the NIC has put into host memory.
    pub(super) ring: Ring<ToHost<Symbolic>>,
    /// Packets and commands for the NIC.
    pub(super) outbox: Outbox,
    pub(super) to_nic: Wire<Segment<Symbolic>>,
    pub(super) to_clients: Wire<Segment<Symbolic>>,
}

impl Port {
    /// The NIC of this number, quiet.
    pub(super) fn new(experiment: &Experiment, number: u8) -> Result<Self, Invalid> {
        // The first NIC's seeds are the run's own; those of the others differ in bits that no other salt has.
        let seed = experiment.run.seed ^ u64::from(number) << 48;
        let wire = |salt: u64| {
            Wire::new(&experiment.wire, seed ^ salt).map_err(|e| Invalid::from(e.within("wire")))
        };
        Ok(Self {
            nic: NicSide::new(experiment, seed)?,
            ring: Ring::new(experiment.host.kernel.receive_ring_entries as usize),
            outbox: Outbox::default(),
            to_nic: wire(1)?,
            to_clients: wire(2)?,
        })
    }
}

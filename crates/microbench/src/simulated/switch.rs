//! A store-and-forward switch.

use super::SimulationError;
use super::event::{Context, Event, NicId};
use super::frame::{Body, Frame};
use crate::frame::LinkRate;
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::Span;

/// Nanoseconds from the last bit of a frame until the frame can leave (assumed: the report does not name its switches).
const FORWARDING_NS: u64 = 4_000;

/// Frames that a port can queue per gigabit per second (assumed: 128 KiB of memory, usual at the time, in full frames; the shared memory of
/// current switches amounts to about as much).
const QUEUE_FRAMES: u32 = 85;

/// A switch with a port for each NIC. It does not take part in flow control.
#[derive(Debug)]
pub(super) struct Switch {
    /// The NIC at each port, and the wire to it.
    ports: Vec<(NicId, Wire<Frame>)>,
}

impl Switch {
    pub(super) fn new(nics: &[NicId], link: LinkRate) -> Result<Self, SimulationError> {
        let config = WireConfig {
            rate_mbps: link.mbps,
            delay_ns: super::CABLE_NS,
            queue_frames: QUEUE_FRAMES * link.mbps.div_ceil(LinkRate::GIGABIT.mbps),
            ..WireConfig::default()
        };
        let port = |nic: &NicId| Ok::<_, SimulationError>((*nic, Wire::new(&config, 0)?));
        let ports = nics.iter().map(port).collect::<Result<_, _>>()?;
        Ok(Self { ports })
    }

    /// Handles a received frame. The frame's destination machine has one port on this switch.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, frame: Frame) {
        if matches!(frame.body, Body::Pause { .. }) {
            return;
        }
        let port = self
            .ports
            .iter_mut()
            .find(|(nic, _)| nic.machine == frame.to);
        if let Some((nic, wire)) = port {
            let leaves = cx.now + Span::from_ns(FORWARDING_NS);
            cx.send(wire, leaves, frame, Event::FromSwitch(*nic));
        }
    }

    /// Takes the frame that arrives at a NIC.
    pub(super) fn deliver(&mut self, cx: &mut Context<'_>, to: NicId) -> Option<Frame> {
        let (_, wire) = self.ports.iter_mut().find(|(nic, _)| *nic == to)?;
        cx.receive(wire, Event::FromSwitch(to))
    }

    /// Returns the number of frames for a machine that were dropped for lack of buffers.
    pub(super) fn dropped(&self, machine: usize) -> u64 {
        let of_machine = |(nic, _): &&(NicId, Wire<Frame>)| usize::from(nic.machine) == machine;
        let ports = self.ports.iter().filter(of_machine);
        ports
            .map(|(_, wire)| wire.counters().dropped_queue_full)
            .sum()
    }
}

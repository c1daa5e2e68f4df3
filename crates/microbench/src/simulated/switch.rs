//! A store-and-forward switch.

use super::SimulationError;
use super::event::{Context, Event, NicId};
use super::frame::{Body, Frame};
use crate::frame::LinkRate;
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::Span;

/// From the last bit of a frame until it can leave, nanoseconds (assumed: the switches of the report are not named).
const FORWARDING_NS: u64 = 4_000;

/// Frames that wait for a port of each gigabit a second (assumed: 128 KiB of memory, the usual then, in full frames; what those of today
/// share is about as much).
const QUEUE_FRAMES: u32 = 85;

/// A switch with a port for each NIC. It takes no part in flow control.
#[derive(Debug)]
pub(super) struct Switch {
    /// Out of each port, and whose it is.
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

    /// A frame has come in. The machine that it is for has one port here.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, frame: Frame) {
        if matches!(frame.body, Body::Pause { .. }) {
            return;
        }
        let port = self
            .ports
            .iter_mut()
            .find(|(nic, _)| nic.machine == frame.to);
        let Some((nic, wire)) = port else {
            return cx.contents.forget(frame.body);
        };
        let idle = wire.next_arrival().is_none();
        let dropped = wire.counters().dropped_queue_full;
        wire.send(
            cx.now + Span::from_ns(FORWARDING_NS),
            frame.len.into(),
            frame,
        );
        if wire.counters().dropped_queue_full > dropped {
            cx.contents.forget(frame.body);
        }
        if let Some(arrival) = wire.next_arrival().filter(|_| idle) {
            cx.at(arrival, Event::FromSwitch(*nic));
        }
    }

    /// A frame arrives at a NIC.
    pub(super) fn deliver(&mut self, cx: &mut Context<'_>, to: NicId) -> Option<Frame> {
        let (_, wire) = self.ports.iter_mut().find(|(nic, _)| *nic == to)?;
        let frame = wire.receive(cx.now);
        if let Some(arrival) = wire.next_arrival() {
            cx.at(arrival, Event::FromSwitch(to));
        }
        frame
    }

    /// Frames for a machine for which there was no room.
    pub(super) fn dropped(&self, machine: usize) -> u64 {
        let of_machine = |(nic, _): &&(NicId, Wire<Frame>)| usize::from(nic.machine) == machine;
        let ports = self.ports.iter().filter(of_machine);
        ports
            .map(|(_, wire)| wire.counters().dropped_queue_full)
            .sum()
    }
}

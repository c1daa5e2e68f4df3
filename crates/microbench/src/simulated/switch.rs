//! A store-and-forward switch.

use super::SimulationError;
use super::event::{Context, Event};
use super::frame::{Body, Frame};
use crate::frame::LinkRate;
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::{Span, Time};

/// From the last bit of a frame until it can leave, nanoseconds (assumed: the switches of the report are not named).
const FORWARDING_NS: u64 = 4_000;

/// Frames that wait for a port (assumed: 128 KiB of memory a port, the usual then, in full frames).
const QUEUE_FRAMES: u32 = 85;

/// A switch with a port for each machine. It takes no part in flow control.
#[derive(Debug)]
pub(super) struct Switch {
    /// Out of each port.
    ports: Vec<Wire<Frame>>,
}

impl Switch {
    pub(super) fn new(machines: usize, link: LinkRate) -> Result<Self, SimulationError> {
        let config = WireConfig {
            rate_mbps: link.mbps,
            delay_ns: super::CABLE_NS,
            queue_frames: QUEUE_FRAMES,
            ..WireConfig::default()
        };
        let port = |_| Wire::new(&config, 0);
        let ports = (0..machines).map(port).collect::<Result<_, _>>()?;
        Ok(Self { ports })
    }

    /// A frame has come in.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, frame: Frame) {
        if matches!(frame.body, Body::Pause { .. }) {
            return;
        }
        let port = &mut self.ports[usize::from(frame.to)];
        let idle = port.next_arrival().is_none();
        port.send(
            cx.now + Span::from_ns(FORWARDING_NS),
            frame.len.into(),
            frame,
        );
        if idle {
            self.arm(cx, frame.to);
        }
    }

    /// A frame arrives at a machine.
    pub(super) fn deliver(&mut self, cx: &mut Context<'_>, machine: u8) -> Option<Frame> {
        let frame = self.ports[usize::from(machine)].receive(cx.now);
        self.arm(cx, machine);
        frame
    }

    fn arm(&self, cx: &mut Context<'_>, machine: u8) {
        let next: Option<Time> = self.ports[usize::from(machine)].next_arrival();
        if let Some(arrival) = next {
            cx.at(arrival, Event::FromSwitch(machine));
        }
    }

    /// Frames for a machine for which there was no room.
    pub(super) fn dropped(&self, machine: usize) -> u64 {
        self.ports[machine].counters().dropped_queue_full
    }
}

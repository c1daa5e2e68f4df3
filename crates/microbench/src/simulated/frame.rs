//! Frames in flight.

use baton_sim::hardware::{CHECK_SEQUENCE, nic};
use baton_wire::{Symbolic, Time, frame_len};
use std::num::NonZeroU64;

/// A TCP segment whose data is named, not stored.
pub(super) type Segment = baton_tcp::Segment<Symbolic>;

/// Bytes of a minimum frame, such as a pause frame.
pub(super) const LEAST_FRAME: u16 = frame_len(0) as u16;

/// A frame in flight.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Length in bytes, including the check sequence.
    pub(super) len: u16,
    /// The machine that receives the frame.
    pub(super) to: u8,
    /// When the frame was given to its driver.
    pub(super) born: Time,
    /// RSS hash of the addresses and ports.
    pub(super) hash: u32,
    /// The frame's queue in the NIC that currently has it.
    pub(super) queue: u8,
    /// Address of the frame in the host's memory, if it is not in a buffer for frames to send.
    pub(super) lies_at: Option<NonZeroU64>,
    /// Contents of the frame.
    pub(super) body: Body,
}

/// Contents of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    /// A UDP datagram, whose contents are not modelled.
    Datagram,
    /// A TCP segment.
    Segment(Box<Segment>),
    /// All bytes of a frame with an IP packet, without check sequence.
    Packet(Vec<u8>),
    /// Asks the partner to stop or to continue sending (802.3x).
    Pause { stop: bool },
}

impl Frame {
    /// Creates a frame for a machine.
    pub(super) fn new(len: u16, to: u8, hash: u32, body: Body) -> Self {
        Self {
            len,
            to,
            born: Time::ZERO,
            hash,
            queue: 0,
            lies_at: None,
            body,
        }
    }

    /// Returns the number of bytes of TCP data in the frame.
    pub(super) fn data_len(&self) -> u64 {
        match &self.body {
            Body::Segment(segment) => segment.payload.len() as u64,
            Body::Datagram | Body::Packet(_) | Body::Pause { .. } => 0,
        }
    }
}

impl nic::Frame for Frame {
    fn bytes(&self) -> u32 {
        u32::from(self.len - CHECK_SEQUENCE)
    }

    fn hash(&self) -> u32 {
        self.hash
    }

    fn queue(&self) -> u8 {
        self.queue
    }

    fn set_queue(&mut self, queue: u8) {
        self.queue = queue;
    }

    fn pause(_now: Time, stop: bool) -> Self {
        Self::new(LEAST_FRAME, 0, 0, Body::Pause { stop })
    }

    fn as_pause(&self) -> Option<bool> {
        match self.body {
            Body::Pause { stop } => Some(stop),
            _ => None,
        }
    }
}

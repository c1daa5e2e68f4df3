//! Frames on their way.

use baton_wire::{Symbolic, Time};

/// A TCP segment whose data is named, not stored.
pub(super) type Segment = baton_tcp::Segment<Symbolic>;

/// Bytes of the check sequence, which is on the wire only.
const CHECK_SEQUENCE: u32 = 4;

/// Bytes of a frame that carries nothing, such as one that pauses.
pub(super) const LEAST_FRAME: u16 = 64;

/// A frame on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Its bytes, check sequence included.
    pub(super) len: u16,
    /// The machine it is for.
    pub(super) to: u8,
    /// When its driver was given it.
    pub(super) born: Time,
    /// What it carries.
    pub(super) body: Body,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A UDP datagram.
    Datagram,
    /// A TCP segment, by its place in the slab.
    Segment(usize),
    /// The partner is to stop, or to go on (802.3x).
    Pause { stop: bool },
}

impl Frame {
    /// Its bytes in memory.
    pub(super) fn bytes(&self) -> u32 {
        u32::from(self.len) - CHECK_SEQUENCE
    }
}

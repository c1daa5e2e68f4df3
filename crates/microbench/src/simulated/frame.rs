//! Frames on their way, and what they carry.

use baton_wire::{Symbolic, Time};
use slab::Slab;

/// A TCP segment whose data is named, not stored.
pub(super) type Segment = baton_tcp::Segment<Symbolic>;

/// Bytes of the check sequence, which is on the wire only.
pub(super) const CHECK_SEQUENCE: u16 = 4;

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
    /// What receive-side scaling makes of its addresses and ports.
    pub(super) hash: u32,
    /// The queue that it is in, of the NIC where it is.
    pub(super) queue: u8,
    /// What it carries.
    pub(super) body: Body,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A UDP datagram.
    Datagram,
    /// A TCP segment, by its place among the [contents](Contents).
    Segment(usize),
    /// An IP packet, by the place there of all bytes of its frame.
    Packet(usize),
    /// The partner is to stop, or to go on (802.3x).
    Pause { stop: bool },
}

impl Frame {
    /// Its bytes in memory.
    pub(super) fn bytes(&self) -> u32 {
        u32::from(self.len - CHECK_SEQUENCE)
    }
}

/// What is in frames that are on their way.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) segments: Slab<Segment>,
    pub(super) packets: Packets,
}

impl Contents {
    /// Bytes of data that a segment has; other frames have none for TCP.
    pub(super) fn data_len(&self, body: Body) -> u64 {
        match body {
            Body::Segment(key) => self.segments[key].payload.len().try_into().unwrap_or(0),
            Body::Datagram | Body::Packet(_) | Body::Pause { .. } => 0,
        }
    }

    /// A frame goes no further.
    pub(super) fn forget(&mut self, body: Body) {
        match body {
            Body::Segment(key) => drop(self.segments.remove(key)),
            Body::Packet(key) => self.packets.remove(key),
            Body::Datagram | Body::Pause { .. } => {}
        }
    }
}

/// Bytes of frames, without check sequence. Memory of those that are gone is used again.
#[derive(Debug, Default)]
pub(super) struct Packets {
    buffers: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl Packets {
    /// Keeps a frame of these bytes; they are copied.
    pub(super) fn insert(&mut self, bytes: &[u8]) -> usize {
        let key = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() - 1
        });
        self.buffers[key].clear();
        self.buffers[key].extend_from_slice(bytes);
        key
    }

    /// The bytes of a frame.
    pub(super) fn bytes_mut(&mut self, key: usize) -> &mut Vec<u8> {
        &mut self.buffers[key]
    }

    /// A frame is gone.
    pub(super) fn remove(&mut self, key: usize) {
        self.free.push(key);
    }

    /// Frames that are on their way.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

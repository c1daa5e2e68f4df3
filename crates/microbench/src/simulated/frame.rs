//! Frames in flight, and their contents.

use baton_sim::hardware::nic;
use baton_wire::{Symbolic, Time};
use slab::Slab;

/// A TCP segment whose data is named, not stored.
pub(super) type Segment = baton_tcp::Segment<Symbolic>;

/// Bytes of the check sequence, which exists on the wire only.
pub(super) const CHECK_SEQUENCE: u16 = 4;

/// Bytes of a minimum frame, such as a pause frame.
pub(super) const LEAST_FRAME: u16 = 64;

/// A frame in flight.
#[derive(Clone, Copy, Debug)]
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
    /// Contents of the frame.
    pub(super) body: Body,
}

/// Contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A UDP datagram.
    Datagram,
    /// A TCP segment, as a key into the [contents](Contents).
    Segment(usize),
    /// An IP packet, as a key to all bytes of its frame in the [contents](Contents).
    Packet(usize),
    /// Asks the partner to stop or to continue sending (802.3x).
    Pause { stop: bool },
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

    fn pause(now: Time, stop: bool) -> Self {
        Self {
            len: LEAST_FRAME,
            to: 0,
            born: now,
            hash: 0,
            queue: 0,
            body: Body::Pause { stop },
        }
    }

    fn as_pause(&self) -> Option<bool> {
        match self.body {
            Body::Pause { stop } => Some(stop),
            _ => None,
        }
    }
}

/// Contents of the frames in flight.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) segments: Slab<Segment>,
    pub(super) packets: Packets,
}

impl Contents {
    /// Returns the number of bytes of TCP data in a frame.
    pub(super) fn data_len(&self, body: Body) -> u64 {
        match body {
            Body::Segment(key) => self.segments[key].payload.len().try_into().unwrap_or(0),
            Body::Datagram | Body::Packet(_) | Body::Pause { .. } => 0,
        }
    }

    /// Drops the contents of a frame.
    pub(super) fn forget(&mut self, body: Body) {
        match body {
            Body::Segment(key) => drop(self.segments.remove(key)),
            Body::Packet(key) => self.packets.remove(key),
            Body::Datagram | Body::Pause { .. } => {}
        }
    }
}

/// Bytes of frames, without check sequence. Buffers of removed frames are reused.
#[derive(Debug, Default)]
pub(super) struct Packets {
    buffers: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl Packets {
    /// Stores a copy of a frame's bytes, and returns its key.
    pub(super) fn insert(&mut self, bytes: &[u8]) -> usize {
        let key = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() - 1
        });
        self.buffers[key].clear();
        self.buffers[key].extend_from_slice(bytes);
        key
    }

    /// Returns the bytes of a frame.
    pub(super) fn bytes_mut(&mut self, key: usize) -> &mut Vec<u8> {
        &mut self.buffers[key]
    }

    /// Removes a frame.
    pub(super) fn remove(&mut self, key: usize) {
        self.free.push(key);
    }

    /// Returns the number of frames in flight.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

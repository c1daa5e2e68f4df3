//! The words that both sides share.

use super::atomic::AtomicU32;
use crate::descriptor::Descriptor;
use std::ops::Deref;

/// A side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that sends requests.
    Host,
    /// The side that sends responses.
    Adapter,
}

impl Side {
    /// Returns the other side.
    pub fn other(self) -> Self {
        match self {
            Self::Host => Self::Adapter,
            Self::Adapter => Self::Host,
        }
    }
}

/// A word on two cache lines of its own. Processors fetch lines in pairs, and writes of one side must not claim a line to which the other
/// side writes.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(super) struct Line(pub(super) AtomicU32);

/// Fill level of a ring: counts of descriptors put and taken since the start, modulo 2^32.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RingIndices {
    pub(super) produced: Line,
    pub(super) consumed: Line,
}

/// What a side waits for while it sleeps, or is about to; zero while it is awake.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Attention(pub(super) Line);

impl Attention {
    /// Waits for descriptors from the other side.
    pub(super) const ENTRIES: u32 = 1;
    /// Waits for space for this side's descriptors.
    pub(super) const ROOM: u32 = 2;
    /// Waits also for descriptors from the other side that nobody waits for.
    pub(super) const LAZY: u32 = 4;
}

/// All shared words except the slots. Initially zero.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    requests: RingIndices,
    responses: RingIndices,
    host: Attention,
    adapter: Attention,
}

impl Control {
    /// Returns the indices of the ring that `from` fills.
    pub(super) fn ring(&self, from: Side) -> &RingIndices {
        match from {
            Side::Host => &self.requests,
            Side::Adapter => &self.responses,
        }
    }

    pub(super) fn attention(&self, side: Side) -> &AtomicU32 {
        let attention = match side {
            Side::Host => &self.host,
            Side::Adapter => &self.adapter,
        };
        &attention.0.0
    }
}

/// Memory that both sides see, initially zero. Every call must return the same locations.
///
/// Slots are copied as bytes, even if the other side writes to them meanwhile: only a side that violates the protocol can cause a torn
/// descriptor, which is checked like any other.
pub trait SharedMemory {
    /// Returns the indices and attention words.
    fn control(&self) -> &Control;

    /// Returns the number of slots in each ring, a power of two.
    fn ring_depth(&self) -> usize;

    /// Copies `descriptors` to the slots from `at` on, in the ring that `from` fills. They do not extend beyond its end.
    fn write_slots(&self, from: Side, at: usize, descriptors: &[Descriptor]);

    /// Appends the contents of `len` slots from `at` on, in the ring that `from` fills. They do not extend beyond its end.
    fn read_slots(&self, from: Side, at: usize, len: usize, descriptors: &mut Vec<Descriptor>);
}

/// References to shared memory.
impl<T: Deref<Target: SharedMemory>> SharedMemory for T {
    fn control(&self) -> &Control {
        (**self).control()
    }
    fn ring_depth(&self) -> usize {
        (**self).ring_depth()
    }
    fn write_slots(&self, from: Side, at: usize, descriptors: &[Descriptor]) {
        (**self).write_slots(from, at, descriptors);
    }
    fn read_slots(&self, from: Side, at: usize, len: usize, descriptors: &mut Vec<Descriptor>) {
        (**self).read_slots(from, at, len, descriptors);
    }
}

/// One of the two rings. Indices count modulo 2^32; the first slot follows the last.
#[derive(Debug)]
pub(super) struct SharedRing<'a, M> {
    memory: &'a M,
    from: Side,
}

impl<'a, M: SharedMemory> SharedRing<'a, M> {
    /// Creates a view of the ring that `from` fills.
    pub(super) fn new(memory: &'a M, from: Side) -> Self {
        Self { memory, from }
    }

    pub(super) fn indices(&self) -> &'a RingIndices {
        self.memory.control().ring(self.from)
    }

    pub(super) fn depth(&self) -> usize {
        self.memory.ring_depth()
    }

    /// Copies `descriptors` to the slots from index `begin` on.
    pub(super) fn write(&self, begin: u32, descriptors: &[Descriptor]) {
        let (at, first) = self.first_run(begin, descriptors.len());
        let (first, second) = descriptors.split_at(first);
        self.memory.write_slots(self.from, at, first);
        if !second.is_empty() {
            self.memory.write_slots(self.from, 0, second);
        }
    }

    /// Appends the contents of the `len` slots from index `begin` on.
    pub(super) fn read(&self, begin: u32, len: usize, descriptors: &mut Vec<Descriptor>) {
        let (at, first) = self.first_run(begin, len);
        self.memory.read_slots(self.from, at, first, descriptors);
        if first < len {
            self.memory
                .read_slots(self.from, 0, len - first, descriptors);
        }
    }

    /// Returns the slot of index `begin`, and how many of `len` slots are contiguous from there.
    fn first_run(&self, begin: u32, len: usize) -> (usize, usize) {
        let depth = self.depth();
        let at = begin as usize & (depth - 1);
        (at, len.min(depth - at))
    }
}

#[cfg(not(loom))]
const _: () = {
    // The layout of shared memory must not depend on the compiler.
    assert!(size_of::<Descriptor>() == Descriptor::BYTES as usize);
    assert!(size_of::<Control>() == 6 * 128 && align_of::<Control>() == 128);
};

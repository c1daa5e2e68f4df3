//! The words that both sides share.

use super::atomic::AtomicU32;
use crate::descriptor::Descriptor;
use std::ops::Deref;

/// A side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It sends requests.
    Host,
    /// It sends responses.
    Adapter,
}

impl Side {
    /// The one across.
    pub fn other(self) -> Self {
        match self {
            Self::Host => Self::Adapter,
            Self::Adapter => Self::Host,
        }
    }
}

/// A word on two cache lines of its own: processors fetch lines in pairs, and what one side writes must not take away a line that
/// the other is writing to.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(super) struct Line(pub(super) AtomicU32);

/// How far a ring has been filled and emptied: counts of descriptors since the beginning, modulo 2^32.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RingIndices {
    pub(super) produced: Line,
    pub(super) consumed: Line,
}

/// What a side that sleeps, or is about to, waits for; zero while it is awake.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Attention(pub(super) Line);

impl Attention {
    /// Descriptors from the other side.
    pub(super) const ENTRIES: u32 = 1;
    /// Room for those of this side.
    pub(super) const ROOM: u32 = 2;
    /// Descriptors from the other side that nobody waits for.
    pub(super) const LAZY: u32 = 4;
}

/// All words beside the slots. Zeros are its beginning.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    requests: RingIndices,
    responses: RingIndices,
    host: Attention,
    adapter: Attention,
}

impl Control {
    /// The indices of the ring that `from` fills.
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

/// Memory that both sides see, zeros in the beginning. It gives the same places at every call.
///
/// Slots are copied as bytes, whatever the other side does to them meanwhile: a torn descriptor can only come from a side that breaks
/// the rules, and is checked like any other.
pub trait SharedMemory {
    /// The indices and attention words.
    fn control(&self) -> &Control;

    /// Slots in each ring, a power of two.
    fn ring_depth(&self) -> usize;

    /// Copies `descriptors` to the slots from `at` on, of the ring that `from` fills; its end is not before theirs.
    fn write_slots(&self, from: Side, at: usize, descriptors: &[Descriptor]);

    /// Appends what stands in `len` slots from `at` on, of the ring that `from` fills; its end is not before theirs.
    fn read_slots(&self, from: Side, at: usize, len: usize, descriptors: &mut Vec<Descriptor>);
}

/// Whatever refers to such memory.
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

/// One of the two rings. Indices run through 2^32; behind the last slot follows the first.
#[derive(Debug)]
pub(super) struct SharedRing<'a, M> {
    memory: &'a M,
    from: Side,
}

impl<'a, M: SharedMemory> SharedRing<'a, M> {
    /// The ring that `from` fills.
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

    /// Appends what stands in the `len` slots from index `begin` on.
    pub(super) fn read(&self, begin: u32, len: usize, descriptors: &mut Vec<Descriptor>) {
        let (at, first) = self.first_run(begin, len);
        self.memory.read_slots(self.from, at, first, descriptors);
        if first < len {
            self.memory
                .read_slots(self.from, 0, len - first, descriptors);
        }
    }

    /// The slot of index `begin`, and how many of `len` slots follow each other from there.
    fn first_run(&self, begin: u32, len: usize) -> (usize, usize) {
        let depth = self.depth();
        let at = begin as usize & (depth - 1);
        (at, len.min(depth - at))
    }
}

#[cfg(not(loom))]
const _: () = {
    // What stands in shared memory must not depend on the compiler.
    assert!(size_of::<Descriptor>() == Descriptor::BYTES as usize);
    assert!(size_of::<Control>() == 6 * 128 && align_of::<Control>() == 128);
};

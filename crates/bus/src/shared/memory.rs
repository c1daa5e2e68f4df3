//! The words that both sides share.

use super::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::descriptor::Descriptor;

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

/// A descriptor's place. Its words are written and read one by one: a torn descriptor can only come from a side that breaks the
/// rules, and is checked like any other.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Slot([AtomicU64; 4]);

impl Slot {
    #[inline]
    pub(super) fn write(&self, descriptor: Descriptor) {
        for (word, value) in self.0.iter().zip(descriptor.0) {
            // The index that is stored afterwards publishes them.
            word.store(value, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn read(&self) -> Descriptor {
        Descriptor(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}

/// The `len` slots from index `begin` on: up to the end of the ring, and from its beginning.
pub(super) fn run(slots: &[Slot], begin: u32, len: usize) -> impl Iterator<Item = &Slot> {
    let begin = begin as usize & (slots.len() - 1);
    let first = len.min(slots.len() - begin);
    slots[begin..begin + first]
        .iter()
        .chain(&slots[..len - first])
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
pub trait SharedMemory {
    /// The indices and attention words.
    fn control(&self) -> &Control;

    /// The slots of the ring that `from` fills: a power of two.
    fn slots(&self, from: Side) -> &[Slot];
}

impl<M: SharedMemory + ?Sized> SharedMemory for &M {
    fn control(&self) -> &Control {
        (**self).control()
    }
    fn slots(&self, from: Side) -> &[Slot] {
        (**self).slots(from)
    }
}

#[cfg(not(loom))]
const _: () = {
    // What stands in shared memory must not depend on the compiler.
    assert!(size_of::<Slot>() == Descriptor::BYTES as usize);
    assert!(size_of::<Control>() == 6 * 128 && align_of::<Control>() == 128);
};

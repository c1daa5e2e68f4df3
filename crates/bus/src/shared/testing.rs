//! Private memory that serves as shared memory in tests.

use super::atomic::{AtomicU64, Ordering};
use super::memory::{Control, SharedMemory, Side};
use crate::descriptor::{Action, Buffer, Descriptor, MOST_INLINE_BYTES, Request, write_inline};
#[cfg(not(loom))]
use crate::descriptor::{Outcome, Response, Status};

/// Slot of a descriptor, as atomic words: with plain memory, a test that violates the protocol would be a data race between two threads of
/// one process. Relaxed accesses let the model checker show what the order of the indices permits.
#[derive(Debug, Default)]
struct Slot([AtomicU64; 4]);

#[derive(Debug)]
pub(super) struct OwnMemory {
    pub control: Control,
    slots: [Vec<Slot>; 2],
}

impl OwnMemory {
    pub fn new(depth: usize) -> Self {
        let ring = || (0..depth).map(|_| Slot::default()).collect();
        Self {
            control: Control::default(),
            slots: [ring(), ring()],
        }
    }
}

impl SharedMemory for OwnMemory {
    fn control(&self) -> &Control {
        &self.control
    }
    fn ring_depth(&self) -> usize {
        self.slots[0].len()
    }
    fn write_slots(&self, from: Side, at: usize, descriptors: &[Descriptor]) {
        let slots = &self.slots[from as usize][at..at + descriptors.len()];
        for (slot, descriptor) in slots.iter().zip(descriptors) {
            for (word, value) in slot.0.iter().zip(descriptor.0) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }
    fn read_slots(&self, from: Side, at: usize, len: usize, descriptors: &mut Vec<Descriptor>) {
        let slots = &self.slots[from as usize][at..at + len];
        let read = |slot: &Slot| {
            let word = |at: usize| slot.0[at].load(Ordering::Relaxed);
            Descriptor([0, 1, 2, 3].map(word))
        };
        descriptors.extend(slots.iter().map(read));
    }
}

/// Returns a request of one descriptor.
pub(super) fn request(number: u32) -> Descriptor {
    Request {
        socket: number,
        tag: !number,
        action: Action::Socket,
    }
    .encode()
}

/// Returns a response of one descriptor.
#[cfg(not(loom))]
pub(super) fn response(number: u32) -> Descriptor {
    Response {
        socket: number,
        tag: !number,
        status: Status::Ok,
        outcome: Outcome::PeerClosed,
    }
    .encode()
}

/// Returns a request with `len` bytes of inline data.
pub(super) fn inline_request(number: u32, len: usize) -> Vec<Descriptor> {
    assert!(len <= MOST_INLINE_BYTES);
    let action = Action::send(Buffer::Inline { len: len as u16 }, false);
    let mut head = Request {
        socket: number,
        tag: !number,
        action,
    }
    .encode();
    let mut tail = Vec::new();
    write_inline(&mut head, &vec![number as u8; len], &mut tail);
    [vec![head], tail].concat()
}

//! Memory of one process that stands for shared memory in tests.

use super::memory::{Control, SharedMemory, Side, Slot};
use crate::descriptor::{Action, Buffer, Descriptor, MOST_INLINE_BYTES, Request, write_inline};
#[cfg(not(loom))]
use crate::descriptor::{Outcome, Response, Status};

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
    fn slots(&self, from: Side) -> &[Slot] {
        &self.slots[from as usize]
    }
}

/// A request of one descriptor.
pub(super) fn request(number: u32) -> Descriptor {
    Request {
        socket: number,
        tag: !number,
        action: Action::Socket,
    }
    .encode()
}

/// A response of one descriptor.
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

/// A request with data inside, of `len` bytes.
pub(super) fn inline_request(number: u32, len: usize) -> Vec<Descriptor> {
    assert!(len <= MOST_INLINE_BYTES);
    let action = Action::Send {
        data: Buffer::Inline { len: len as u16 },
        more: false,
    };
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

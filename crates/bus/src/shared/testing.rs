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

/// A queue as weakly ordered as that of the standard library, for the model checker: a message is visible once its slot is marked.
#[cfg(loom)]
pub(super) mod queue {
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::sync::{Arc, Mutex};
    use std::cell::Cell;

    struct Slot<T> {
        is_sent: AtomicBool,
        message: Mutex<Option<T>>,
    }

    struct Queue<T> {
        slots: Vec<Slot<T>>,
        sent: AtomicUsize,
    }

    pub struct SyncSender<T>(Arc<Queue<T>>);

    pub struct Receiver<T> {
        queue: Arc<Queue<T>>,
        received: Cell<usize>,
    }

    #[derive(Debug)]
    pub enum TrySendError<T> {
        Full(T),
        #[expect(dead_code, reason = "the model keeps its mailboxes")]
        Disconnected(T),
    }

    /// Creates a queue for `most` messages in all.
    pub fn sync_channel<T>(most: usize) -> (SyncSender<T>, Receiver<T>) {
        let slot = || Slot {
            is_sent: AtomicBool::new(false),
            message: Mutex::new(None),
        };
        let queue = Arc::new(Queue {
            slots: (0..most).map(|_| slot()).collect(),
            sent: AtomicUsize::new(0),
        });
        let receiver = Receiver {
            queue: Arc::clone(&queue),
            received: Cell::new(0),
        };
        (SyncSender(queue), receiver)
    }

    impl<T> Clone for SyncSender<T> {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0))
        }
    }

    impl<T> std::fmt::Debug for SyncSender<T> {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("SyncSender")
        }
    }

    impl<T> std::fmt::Debug for Receiver<T> {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("Receiver")
        }
    }

    impl<T> SyncSender<T> {
        pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
            let index = self.0.sent.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = self.0.slots.get(index) else {
                return Err(TrySendError::Full(message));
            };
            *slot.message.lock().unwrap() = Some(message);
            slot.is_sent.store(true, Ordering::Release);
            Ok(())
        }
    }

    impl<T> Receiver<T> {
        pub fn try_recv(&self) -> Result<T, ()> {
            let index = self.received.get();
            let slot = self.queue.slots.get(index).ok_or(())?;
            if !slot.is_sent.load(Ordering::Acquire) {
                return Err(());
            }
            self.received.set(index + 1);
            slot.message.lock().unwrap().take().ok_or(())
        }
    }
}

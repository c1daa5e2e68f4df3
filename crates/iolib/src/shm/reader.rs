//! A thread that reads the parts of a host's files that are not in memory, so that the adapter need not wait for the disk.

use bytes::Bytes;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

/// Maximum number of these threads. A thread ends after its host has gone, but not before the disk has answered.
const MOST_READERS: usize = 256;
const STACK_BYTES: usize = 64 << 10;

static READERS: AtomicUsize = AtomicUsize::new(0);

/// Bytes to read.
struct Order {
    file: Arc<OwnedFd>,
    offset: u64,
    len: u32,
}

/// The adapter's handle to the thread of one host. The thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    orders: Sender<Order>,
    results: Receiver<Option<Bytes>>,
    /// A result that has arrived and was not taken.
    next: Option<Option<Bytes>>,
    /// Readable when a result has arrived.
    bell: Arc<OwnedFd>,
}

impl Reader {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system has no resources for it, or there are too many of these threads.
    pub fn start() -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (orders, waiting) = channel();
        let (done, results) = channel();
        let counted = Counted::new().ok_or(io::ErrorKind::QuotaExceeded)?;
        let rung = Arc::clone(&bell);
        thread::Builder::new()
            .name("baton-reader".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let _counted = counted;
                for order in waiting {
                    if done.send(read(&order)).is_err() {
                        return;
                    }
                    // The write fails only if the bell rings anyway.
                    let _ = rustix::io::write(&*rung, &1_u64.to_ne_bytes());
                }
            })?;
        Ok(Self {
            orders,
            results,
            next: None,
            bell,
        })
    }

    /// Orders bytes of a file. Results arrive in the same order.
    pub fn order(&self, file: Arc<OwnedFd>, offset: u64, len: u32) {
        // If the thread has ended, `has_result` notices that.
        let _ = self.orders.send(Order { file, offset, len });
    }

    /// Returns whether the next result has arrived.
    pub fn has_result(&mut self) -> bool {
        if self.next.is_none() {
            // Silence the bell first: a result that arrives later rings it again.
            let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
            self.next = match self.results.try_recv() {
                Ok(result) => Some(result),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(None),
            };
        }
        self.next.is_some()
    }

    /// Takes the next result, which has arrived: the bytes, or `None` if the file does not have them all or cannot be read.
    pub fn take(&mut self) -> Option<Bytes> {
        self.next.take().flatten()
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Counts a reader thread while it exists.
struct Counted(());

impl Counted {
    fn new() -> Option<Self> {
        let counted = Self(());
        let before = READERS.fetch_add(1, Ordering::Relaxed);
        (before < MOST_READERS).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads all bytes of an order, however long that takes.
fn read(order: &Order) -> Option<Bytes> {
    let mut data = vec![0; order.len as usize];
    let mut len = 0;
    while len < data.len() {
        let offset = order.offset + len as u64;
        match rustix::io::pread(&*order.file, &mut data[len..], offset) {
            Ok(0) => return None,
            Ok(read) => len += read,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(data.into())
}

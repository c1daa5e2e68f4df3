//! Connections of the kernel's that an application uses by system calls of its own, and waits for by an epoll instance of its own: as
//! long as they are in the kernel and nothing of them is here.
//!
//! Such a connection is in no set of this library. Before it leaves the kernel the application's calls that are under way end, and its
//! instance waits for it no more; the [`Poll`](crate::Poll) that it is registered with does from then on.

use crate::Adapter;
use crate::kernel::KernelSocket;
use crate::poll::sealed::Sealed;
use crate::stream::TcpStream;
use baton_host::NextLook;
use baton_host::layer::Used;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};

/// What an application's epoll instance waits for, in the application's words.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Bits of epoll_ctl(2).
    pub events: u32,
    /// What it is told with them.
    pub data: u64,
}

/// What the application and this library share of one connection.
#[derive(Debug)]
pub struct Direct {
    /// Held for reading by each of the application's calls, which do not wait.
    gate: RwLock<Gate>,
    corked: AtomicBool,
    /// The policy is told, and asked, once there have been so many enqueues or so many reads since.
    least_enqueues: AtomicU32,
    least_receives: AtomicU32,
    /// What it has not been told.
    requests: AtomicU32,
    enqueues: AtomicU32,
    bytes: AtomicU64,
    receives: AtomicU32,
}

#[derive(Debug)]
struct Gate {
    /// The library's descriptor of the connection.
    fd: Weak<OwnedFd>,
    is_open: bool,
    /// It does not open again.
    is_shut: bool,
    watch: Option<(Arc<OwnedFd>, Watch)>,
}

impl Gate {
    /// Has an instance of the application's wait for the connection, or no longer if there is nothing to wait for.
    fn tell(&self, instance: &OwnedFd, watch: Option<Watch>, is_new: bool) -> Result<(), Errno> {
        let fd = self.fd.upgrade().ok_or(Errno::BADF)?;
        let Some(Watch { events, data }) = watch else {
            return epoll::delete(instance, fd);
        };
        let events = epoll::EventFlags::from_bits_retain(events);
        let data = epoll::EventData::new_u64(data);
        match is_new {
            true => epoll::add(instance, fd, data, events),
            false => epoll::modify(instance, fd, data, events),
        }
    }
}

impl Direct {
    /// The application may begin, if it `is_open`.
    pub(crate) fn new(fd: &Arc<OwnedFd>, is_open: bool) -> Self {
        Self {
            gate: RwLock::new(Gate {
                fd: Arc::downgrade(fd),
                is_open,
                is_shut: false,
                watch: None,
            }),
            corked: AtomicBool::new(false),
            least_enqueues: AtomicU32::new(0),
            least_receives: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            enqueues: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            receives: AtomicU32::new(0),
        }
    }

    fn gate(&self) -> RwLockWriteGuard<'_, Gate> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call of the application's. None where it may not.
    fn call<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        // Whoever changes it has the core's lock, and so may wait for calls; nobody waits for whoever changes it but there.
        let gate = self.gate.try_read().ok()?;
        gate.is_open.then(call)
    }

    pub(crate) fn is_open(&self) -> bool {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        gate.is_open
    }

    /// Whether there is something to close, or to keep from opening.
    fn may_close(&self, for_good: bool) -> bool {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        gate.is_open || for_good && !gate.is_shut
    }

    /// The application makes no more calls, and its instance waits no more. False if that was so before.
    pub(crate) fn close(&self) -> bool {
        let mut gate = self.gate();
        if let (true, Some((instance, _))) = (gate.is_open, &gate.watch) {
            // It waits: what would be an error is not to be told.
            let _ = gate.tell(instance, None, false);
        }
        std::mem::take(&mut gate.is_open)
    }

    /// It may make calls again. False where its instance cannot wait.
    pub(crate) fn open(&self) -> bool {
        let mut gate = self.gate();
        gate.is_open = match &gate.watch {
            Some((instance, watch)) => gate.tell(instance, Some(*watch), true).is_ok(),
            None => true,
        };
        self.set_next_look(NextLook::AT_ONCE);
        gate.is_open
    }

    /// Whether it may be opened again, because the application waits for it.
    pub(crate) fn may_open(&self) -> bool {
        let gate = self.gate();
        !gate.is_open && !gate.is_shut && gate.watch.is_some()
    }

    /// The application waits for the connection; true if its instance does.
    pub(crate) fn watch(&self, instance: &Arc<OwnedFd>, watch: Watch) -> io::Result<bool> {
        let mut gate = self.gate();
        let is_there = |(other, _): &(Arc<OwnedFd>, Watch)| Arc::ptr_eq(other, instance);
        let is_new = !gate.watch.as_ref().is_some_and(is_there);
        if gate.is_open {
            gate.tell(instance, Some(watch), is_new)?;
        }
        gate.watch = Some((Arc::clone(instance), watch));
        Ok(gate.is_open)
    }

    /// The application waits for it no more.
    pub(crate) fn unwatch(&self) {
        let mut gate = self.gate();
        if let (Some((instance, _)), true) = (gate.watch.take(), gate.is_open) {
            let _ = gate.tell(&instance, None, false);
        }
    }

    /// The connection has another socket. It is not in use directly.
    pub(crate) fn set_fd(&self, fd: &Arc<OwnedFd>) {
        self.gate().fd = Arc::downgrade(fd);
    }

    /// It does not open again.
    pub(crate) fn shut(&self) {
        self.gate().is_shut = true;
    }

    pub(crate) fn is_corked(&self) -> bool {
        self.corked.load(Ordering::Relaxed)
    }

    /// Gives what it was.
    pub(crate) fn set_corked(&self, corked: bool) -> bool {
        self.corked.swap(corked, Ordering::Relaxed)
    }

    /// What the policy has not been told yet.
    pub(crate) fn take_used(&self) -> Used {
        Used {
            requests: self.requests.swap(0, Ordering::Relaxed),
            enqueues: self.enqueues.swap(0, Ordering::Relaxed),
            bytes: self.bytes.swap(0, Ordering::Relaxed),
            receives: self.receives.swap(0, Ordering::Relaxed),
        }
    }

    /// From what on the policy is to be told.
    pub(crate) fn set_next_look(&self, next: NextLook) {
        self.least_enqueues.store(next.enqueues, Ordering::Relaxed);
        self.least_receives.store(next.receives, Ordering::Relaxed);
    }
}

/// Use by system calls of the application's own.
impl TcpStream {
    /// A connection of the kernel's as by [`TcpStream::from_kernel`], with these ends, which the application uses
    /// [directly](TcpStream::directly) at first.
    ///
    /// # Errors
    /// As [`TcpStream::from_kernel`].
    pub fn from_kernel_direct(
        adapter: &Adapter,
        socket: impl Into<KernelSocket>,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<Self> {
        let socket = socket.into();
        Self::take_in(adapter, |stack| stack.take_in_direct(socket, local, peer))
    }

    /// Whether the application may use it directly now.
    pub fn is_direct(&self) -> bool {
        self.direct().is_some_and(Direct::is_open)
    }

    /// Makes a system call on the connection by the application's descriptor, which must not wait. None where the stream has to be used
    /// instead: the connection is not in the kernel, or something of it is here.
    pub fn directly<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        self.direct()?.call(call)
    }

    /// The application has sent `bytes` directly, by so many enqueues. The policy may have the connection move.
    pub fn note_sent(&self, enqueues: u32, bytes: usize) {
        if let Some(direct) = self.direct() {
            direct.requests.fetch_add(1, Ordering::Relaxed);
            direct.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            let before = direct.enqueues.fetch_add(enqueues, Ordering::Relaxed);
            let least = direct.least_enqueues.load(Ordering::Relaxed);
            self.consider_if(before.saturating_add(enqueues) >= least, direct);
        }
    }

    /// The same when it has received something.
    pub fn note_received(&self) {
        if let Some(direct) = self.direct() {
            let before = direct.receives.fetch_add(1, Ordering::Relaxed);
            let least = direct.least_receives.load(Ordering::Relaxed);
            self.consider_if(before.saturating_add(1) >= least, direct);
        }
    }

    /// The application has held partial segments back, or does so no longer, by a call that it makes [directly](TcpStream::directly).
    pub fn note_corked(&self, corked: bool) {
        if let Some(direct) = self.direct() {
            direct.set_corked(corked);
        }
    }

    fn consider_if(&self, is_due: bool, direct: &Direct) {
        if is_due {
            let socket = self.socket();
            self.handle().call(|core| core.consider(socket, direct));
        }
    }

    /// The connection is used through the stream from now on: as long as no [`Poll`](crate::Poll) waits for it in the application's words, or
    /// `for_good`.
    pub fn end_direct(&self, for_good: bool) {
        if let Some(direct) = self.direct()
            && direct.may_close(for_good)
        {
            let socket = self.socket();
            self.handle().call(|core| {
                if for_good {
                    direct.shut();
                }
                core.end_direct(socket, direct);
            });
        }
    }
}

//! Kernel connections that an application uses by its own system calls and watches with its own epoll instance, while they are in the
//! kernel and this library holds none of their data.
//!
//! This library does not watch such a connection. Before the connection leaves the kernel, the application's calls in progress end, and its
//! epoll instance stops watching it; the [`Poll`](crate::Poll) that it is registered with watches it from then on.

use crate::Adapter;
use crate::kernel::KernelSocket;
use crate::poll::sealed::Sealed;
use crate::stream::TcpStream;
use baton_host::layer::Used;
use baton_host::{NextLook, SocketId};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard, Weak};

/// What an application's epoll instance waits for, as the application specified it.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Event bits of epoll_ctl(2).
    pub events: u32,
    /// Data that is reported with the events.
    pub data: u64,
}

/// State of one connection that the application and this library share.
#[derive(Debug)]
pub struct Direct {
    /// Each of the application's calls, which do not block, holds a read lock.
    gate: RwLock<Gate>,
    /// The socket's ID, once it has one.
    socket: OnceLock<SocketId>,
    corked: AtomicBool,
    /// Number of enqueues or of reads after which the counters below are reported to the policy, which may then have the connection move.
    least_enqueues: AtomicU32,
    least_receives: AtomicU32,
    /// Counters that were not reported to the policy yet.
    requests: AtomicU32,
    enqueues: AtomicU32,
    bytes: AtomicU64,
    receives: AtomicU32,
    /// Bytes sent since the application last received something.
    response_bytes: AtomicU64,
    /// Number of times that the application has received something from any connection.
    all_receives: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Gate {
    /// The library's descriptor of the connection.
    fd: Weak<OwnedFd>,
    is_open: bool,
    /// The gate does not open again.
    is_shut: bool,
    watch: Option<(Arc<OwnedFd>, Watch)>,
}

impl Gate {
    /// Adds the connection to an epoll instance of the application or changes its events; removes it without a `watch`.
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
    /// Creates the state. The application may use the connection directly now if `is_open`. Its reads are added to `all_receives`.
    pub(crate) fn new(fd: &Arc<OwnedFd>, is_open: bool, all_receives: &Arc<AtomicU64>) -> Self {
        Self {
            gate: RwLock::new(Gate {
                fd: Arc::downgrade(fd),
                is_open,
                is_shut: false,
                watch: None,
            }),
            socket: OnceLock::new(),
            corked: AtomicBool::new(false),
            least_enqueues: AtomicU32::new(0),
            least_receives: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            enqueues: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            receives: AtomicU32::new(0),
            response_bytes: AtomicU64::new(0),
            all_receives: Arc::clone(all_receives),
        }
    }

    /// Sets the ID of the connection's socket.
    pub(crate) fn set_socket(&self, socket: SocketId) {
        // The ID never changes.
        let _ = self.socket.set(socket);
    }

    pub(crate) fn socket(&self) -> Option<SocketId> {
        self.socket.get().copied()
    }

    fn gate(&self) -> RwLockWriteGuard<'_, Gate> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call of the application. Returns `None` if direct use is not allowed now.
    fn call<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        // A thread that changes the gate holds the core's lock and may therefore wait for calls in progress. Calls must not wait for that
        // thread.
        let gate = self.gate.try_read().ok()?;
        gate.is_open.then(call)
    }

    pub(crate) fn is_open(&self) -> bool {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        gate.is_open
    }

    /// Returns whether [`Direct::close`], or [`Direct::shut`] if `for_good`, would change anything.
    fn may_close(&self, for_good: bool) -> bool {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        gate.is_open || for_good && !gate.is_shut
    }

    /// Ends the application's direct calls and removes the connection from its epoll instance. Returns whether the gate was open.
    pub(crate) fn close(&self) -> bool {
        let mut gate = self.gate();
        if let (true, Some((instance, _))) = (gate.is_open, &gate.watch) {
            // The instance is watching the connection; an error here is of no use to anybody.
            let _ = gate.tell(instance, None, false);
        }
        std::mem::take(&mut gate.is_open)
    }

    /// Lets the application make calls again. Returns false if its epoll instance cannot watch the socket, or after [`Direct::shut`].
    pub(crate) fn open(&self) -> bool {
        let mut gate = self.gate();
        gate.is_open = match &gate.watch {
            _ if gate.is_shut => false,
            Some((instance, watch)) => gate.tell(instance, Some(*watch), true).is_ok(),
            None => true,
        };
        self.set_next_look(NextLook::AT_ONCE);
        gate.is_open
    }

    /// Returns whether the connection may be used directly again, because the application watches it.
    pub(crate) fn may_open(&self) -> bool {
        let gate = self.gate();
        !gate.is_open && !gate.is_shut && gate.watch.is_some()
    }

    /// Sets what the application waits for. Returns true if its epoll instance watches the connection now.
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

    /// Ends the application's watch.
    pub(crate) fn unwatch(&self) {
        let mut gate = self.gate();
        if let (Some((instance, _)), true) = (gate.watch.take(), gate.is_open) {
            let _ = gate.tell(&instance, None, false);
        }
    }

    /// Replaces the descriptor after the connection came back on a new socket. The connection is not in direct use.
    pub(crate) fn set_fd(&self, fd: &Arc<OwnedFd>) {
        self.gate().fd = Arc::downgrade(fd);
    }

    /// Keeps the gate from opening again.
    pub(crate) fn shut(&self) {
        self.gate().is_shut = true;
    }

    /// The application has closed the connection: removes it from the epoll instance, because other processes may still have the file open.
    pub(crate) fn retire(&self) {
        self.shut();
        self.close();
    }

    pub(crate) fn is_corked(&self) -> bool {
        self.corked.load(Ordering::Relaxed)
    }

    /// Returns the previous value.
    pub(crate) fn set_corked(&self, corked: bool) -> bool {
        self.corked.swap(corked, Ordering::Relaxed)
    }

    /// Takes the counters that were not reported to the policy yet.
    pub(crate) fn take_used(&self) -> Used {
        Used {
            requests: self.requests.swap(0, Ordering::Relaxed),
            enqueues: self.enqueues.swap(0, Ordering::Relaxed),
            bytes: self.bytes.swap(0, Ordering::Relaxed),
            receives: self.receives.swap(0, Ordering::Relaxed),
            response_bytes: self.response_bytes.load(Ordering::Relaxed),
        }
    }

    /// Sets the counts at which the policy is asked next.
    pub(crate) fn set_next_look(&self, next: NextLook) {
        self.least_enqueues.store(next.enqueues, Ordering::Relaxed);
        self.least_receives.store(next.receives, Ordering::Relaxed);
    }
}

/// Use by the application's own system calls.
impl TcpStream {
    /// Takes in a kernel connection like [`TcpStream::from_kernel`], with these endpoints. The application starts out using it
    /// [directly](TcpStream::directly).
    ///
    /// # Errors
    /// The errors of [`TcpStream::from_kernel`].
    pub fn from_kernel_direct(
        adapter: &Adapter,
        socket: impl Into<KernelSocket>,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> io::Result<Self> {
        let socket = socket.into();
        Self::take_in(adapter, |stack| stack.take_in_direct(socket, local, peer))
    }

    /// Returns whether the application may use the connection directly now.
    pub fn is_direct(&self) -> bool {
        self.direct().is_some_and(Direct::is_open)
    }

    /// Makes a system call on the connection with the application's descriptor; the call must not block. Returns `None` if the stream has
    /// to be used instead, because the connection is not in the kernel or this library holds some of its data.
    pub fn directly<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        self.direct()?.call(call)
    }

    /// Records that the application has sent `bytes` directly, in this many enqueues. The policy may have the connection move.
    pub fn note_sent(&self, enqueues: u32, bytes: usize) {
        if let Some(direct) = self.direct() {
            direct.requests.fetch_add(1, Ordering::Relaxed);
            direct.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            direct
                .response_bytes
                .fetch_add(bytes as u64, Ordering::Relaxed);
            let before = direct.enqueues.fetch_add(enqueues, Ordering::Relaxed);
            let least = direct.least_enqueues.load(Ordering::Relaxed);
            self.consider_if(before.saturating_add(enqueues) >= least, direct);
        }
    }

    /// Records that the application has received data directly. The policy may have the connection move.
    pub fn note_received(&self) {
        if let Some(direct) = self.direct() {
            direct.response_bytes.store(0, Ordering::Relaxed);
            direct.all_receives.fetch_add(1, Ordering::Relaxed);
            let before = direct.receives.fetch_add(1, Ordering::Relaxed);
            let least = direct.least_receives.load(Ordering::Relaxed);
            self.consider_if(before.saturating_add(1) >= least, direct);
        }
    }

    /// Records that the application corks or uncorks partial segments by a call that it makes [directly](TcpStream::directly).
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

    /// Makes the application use the connection through the stream from now on: permanently if `for_good`, otherwise until a
    /// [`Poll`](crate::Poll) watches it with the application's events again.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// The program may have freed what `data` points to, while this library still sends kept data.
    #[test]
    fn an_epoll_instance_gets_no_events_of_a_closed_connection() {
        let (near, mut far) = UnixStream::pair().expect("room");
        let near = Arc::new(OwnedFd::from(near));
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).expect("room");
        let instance = Arc::new(instance);
        let direct = Direct::new(&near, true, &Arc::default());
        let events = libc::EPOLLIN as u32;
        let is_told = direct.watch(&instance, Watch { events, data: 7 });
        assert!(is_told.expect("it can wait"));
        far.write_all(b"data").expect("room");
        let tells = || {
            let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 2];
            let none = rustix::event::Timespec::default();
            let told = epoll::wait(&instance, &mut events, Some(&none)).expect("it waits");
            told.0.len()
        };
        assert_eq!(tells(), 1);
        direct.close();
        assert!(direct.open() && tells() == 1, "it may again");
        direct.retire();
        assert!(!direct.open() && tells() == 0);
    }
}

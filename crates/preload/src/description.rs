//! An open socket: the state that all duplicates of its descriptor share.

use crate::listener::Listener;
use crate::timestamping::Wishes;
use baton_abi::address::Family;
use baton_sockets::{Readiness, TcpStream};
use libc::c_int;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The kind of a socket.
#[derive(Debug)]
pub enum Place {
    /// An unconnected kernel socket, such as one whose connection stayed with the parent at fork(2).
    Kernel,
    /// A connection on the adapter, or in the kernel and able to move.
    Connection(TcpStream),
    /// A listener, on the adapter and in the kernel.
    Listener(Arc<Listener>),
}

/// The program's descriptors of a socket. A thread that sets an option through one of them locks the list, so that the option is not lost
/// if the descriptors are replaced meanwhile.
#[derive(Debug, Default)]
pub struct Descriptors(Mutex<SmallVec<[c_int; 2]>>);

impl Descriptors {
    /// Creates the list of a socket that is not in the table yet.
    pub fn new(fd: c_int) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SmallVec::from_slice(&[fd]))))
    }

    pub fn list(&self) -> MutexGuard<'_, SmallVec<[c_int; 2]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open socket.
#[derive(Debug)]
pub struct Description {
    place: Place,
    /// The socket's descriptors in the table.
    pub descriptors: Arc<Descriptors>,
    /// `AF_INET` or `AF_INET6`, as the program created the socket.
    pub family: Family,
    /// Whether calls fail instead of waiting.
    pub nonblocking: AtomicBool,
    /// TCP_NODELAY; connections inherit it from their listener.
    pub nodelay: AtomicBool,
    /// TCP_CORK.
    pub corked: AtomicBool,
    /// Timestamps that the program asked for; connections inherit the request from their listener.
    pub times: Wishes,
    /// Whether the last send had MSG_MORE.
    pub more: AtomicBool,
    /// SO_RCVTIMEO and SO_SNDTIMEO.
    timeouts: Mutex<[Option<Duration>; 2]>,
}

impl Description {
    fn new(place: Place, family: Family) -> Self {
        Self {
            place,
            descriptors: Arc::default(),
            family,
            nonblocking: AtomicBool::new(false),
            nodelay: AtomicBool::new(false),
            corked: AtomicBool::new(false),
            times: Wishes::default(),
            more: AtomicBool::new(false),
            timeouts: Mutex::default(),
        }
    }

    /// Creates the description of a kernel socket.
    pub fn kernel(family: Family) -> Self {
        Self::new(Place::Kernel, family)
    }

    /// Creates the description of a connection.
    pub fn connection(stream: TcpStream, family: Family, nonblocking: bool) -> Self {
        // The call waits, not the stream.
        let set = stream.set_nonblocking(true);
        debug_assert!(set.is_ok());
        let description = Self::new(Place::Connection(stream), family);
        description
            .nonblocking
            .store(nonblocking, Ordering::Relaxed);
        description
    }

    /// Sets the list of the connection's descriptors, which the code that replaces them shares.
    pub fn with_descriptors(self, descriptors: Arc<Descriptors>) -> Self {
        Self {
            descriptors,
            ..self
        }
    }

    /// Creates the description of a listener.
    pub fn listener(listener: Listener, family: Family, nonblocking: bool) -> Self {
        let listener = Arc::new(listener);
        let description = Self::new(Place::Listener(listener), family);
        description
            .nonblocking
            .store(nonblocking, Ordering::Relaxed);
        description
    }

    /// Returns the description for the child of fork(2): a listener stays a listener; a connection becomes a kernel socket.
    pub fn for_child(&self) -> Self {
        let Some(listener) = self.as_listener() else {
            return Self::kernel(self.family);
        };
        let copy = Self::listener(listener.for_child(), self.family, self.is_nonblocking());
        copy.times.set_as(&self.times);
        let nodelay = self.nodelay.load(Ordering::Relaxed);
        copy.nodelay.store(nodelay, Ordering::Relaxed);
        copy
    }

    /// Returns the connection, if this is one.
    pub fn stream(&self) -> Option<&TcpStream> {
        match &self.place {
            Place::Connection(stream) => Some(stream),
            Place::Kernel | Place::Listener(_) => None,
        }
    }

    /// Returns whether the kernel answers calls on this socket.
    pub fn is_kernels(&self) -> bool {
        matches!(self.place, Place::Kernel)
    }

    /// Returns the listener, if this is one.
    pub fn as_listener(&self) -> Option<Arc<Listener>> {
        match &self.place {
            Place::Listener(listener) => Some(Arc::clone(listener)),
            Place::Kernel | Place::Connection(_) => None,
        }
    }

    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    /// Returns how long a call waits for data or for buffer space; `None` means without limit.
    pub fn timeout(&self, side: Side) -> Option<Duration> {
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner)[side as usize]
    }

    pub fn set_timeout(&self, side: Side, timeout: Option<Duration>) {
        let mut timeouts = self.timeouts.lock().unwrap_or_else(PoisonError::into_inner);
        timeouts[side as usize] = timeout;
    }
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Read,
    Write,
}

/// Returns the events that epoll(7) and poll(2), whose bits are the same, report for a connection.
pub fn events_of(now: &Readiness) -> u32 {
    let mut events = 0;
    let mut add = |holds: bool, bits: c_int| {
        if holds {
            events |= bits as u32;
        }
    };
    add(now.is_readable(), libc::EPOLLIN | libc::EPOLLRDNORM);
    add(
        now.writable && !now.opening,
        libc::EPOLLOUT | libc::EPOLLWRNORM,
    );
    add(now.ended, libc::EPOLLRDHUP);
    add(now.failed || now.ended && now.shut, libc::EPOLLHUP);
    add(now.untold || now.times, libc::EPOLLERR);
    events
}

/// The events that epoll(7) and poll(2) report for a listener with a pending connection.
pub const ACCEPTABLE: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_those_of_a_kernel_socket() {
        let readable = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
        let writable = (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
        let idle = Readiness {
            writable: true,
            ..Readiness::default()
        };
        assert_eq!(events_of(&idle), writable);
        let unread = Readiness { unread: 1, ..idle };
        assert_eq!(events_of(&unread), readable | writable);
        let ended = Readiness {
            ended: true,
            ..idle
        };
        let half_closed = readable | writable | libc::EPOLLRDHUP as u32;
        assert_eq!(events_of(&ended), half_closed);
        let closed = Readiness {
            shut: true,
            ..ended
        };
        assert_eq!(events_of(&closed), half_closed | libc::EPOLLHUP as u32);
        let failed = Readiness {
            failed: true,
            untold: true,
            ..closed
        };
        let hung_up = half_closed | libc::EPOLLHUP as u32;
        assert_eq!(events_of(&failed), hung_up | libc::EPOLLERR as u32);
        let told = Readiness {
            untold: false,
            ..failed
        };
        assert_eq!(events_of(&told), hung_up);
        let told = Readiness {
            times: true,
            ..idle
        };
        assert_eq!(events_of(&told), writable | libc::EPOLLERR as u32);
        let opening = Readiness {
            opening: true,
            ..Readiness::default()
        };
        assert_eq!(events_of(&opening), 0);
    }
}

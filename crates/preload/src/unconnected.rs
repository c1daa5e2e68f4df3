//! Sockets that are added to epoll sets before they are connected, as nginx does. The kernel waits for such a socket; once this library
//! handles its connection, its registrations have to move to this library's sets.

use crate::calls::{family, set_of};
use crate::description::Description;
use crate::session;
use crate::signals;
use crate::sys::{self, call, outcome};
use crate::table::{self, Entry};
use libc::{c_int, epoll_event};
use std::sync::{Arc, Mutex, PoisonError};

/// TCP_CLOSE of the kernel's `tcp_states.h`.
const CLOSED: u8 = 7;

/// The epoll instances in which an unconnected socket is registered, with events and data.
#[derive(Debug, Default)]
pub struct Unconnected {
    registrations: Mutex<Vec<(c_int, u32, u64)>>,
}

/// Records an epoll_ctl(2) call that the kernel has carried out.
pub fn note(instance: c_int, operation: c_int, fd: c_int, event: Option<epoll_event>) {
    if !session::begins_in_kernel() {
        return;
    }
    let _hold = signals::hold();
    let socket = match table::find(fd) {
        Some(Entry::Unconnected(socket)) => socket,
        None if operation == libc::EPOLL_CTL_ADD && is_unconnected(fd) => {
            session::prepare();
            let socket = Arc::new(Unconnected::default());
            table::set(fd, Entry::Unconnected(Arc::clone(&socket)));
            socket
        }
        _ => return,
    };
    let registrations = socket.registrations.lock();
    let mut registrations = registrations.unwrap_or_else(PoisonError::into_inner);
    registrations.retain(|&(other, ..)| other != instance);
    if let Some(event) = event.filter(|_| operation != libc::EPOLL_CTL_DEL) {
        registrations.push((instance, event.events, event.u64));
    }
}

/// Returns whether the descriptor is a TCP socket in the state CLOSED; a listener has a state of its own.
pub fn is_unconnected(fd: c_int) -> bool {
    // The kernel's socket of a connection on the adapter is closed, too.
    let is_connection = table::socket(fd).is_some_and(|socket| socket.stream().is_some());
    if is_connection || family(fd).is_none() {
        return false;
    }
    // The state is the first byte of TCP_INFO.
    let state = sys::option(fd, libc::IPPROTO_TCP, libc::TCP_INFO);
    state.is_ok_and(|info| info.to_ne_bytes()[0] == CLOSED)
}

impl Unconnected {
    /// Moves the socket's registrations to the sets of this library, once it is connected and `connection` is in the table under `fd`.
    pub fn connected(&self, fd: c_int, connection: &Arc<Description>) {
        let registrations = self.registrations.lock();
        for &(instance, events, data) in &*registrations.unwrap_or_else(PoisonError::into_inner) {
            let nothing = std::ptr::null_mut::<epoll_event>();
            // SAFETY: the kernel ignores the event of a deletion.
            let deleted =
                unsafe { call!(SYS_epoll_ctl, instance, libc::EPOLL_CTL_DEL, fd, nothing) };
            // An instance that was closed in the meantime does not know the socket.
            if outcome(deleted).is_ok()
                && let Some(set) = set_of(instance)
            {
                let event = epoll_event { events, u64: data };
                // The socket is in no other set.
                let _ = set.control(libc::EPOLL_CTL_ADD, fd, connection, Some(event));
            }
        }
    }
}

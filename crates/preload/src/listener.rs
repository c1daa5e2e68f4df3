//! Listeners, which exist both on the adapter and in the kernel.
//!
//! The kernel's listener exists from listen(2) on. The adapter's listener is created by the first call that waits for connections: a server
//! often listens in one process and accepts in others, and on the adapter a listener belongs to the process that created it.

use crate::reason::{Reason, tell};
use crate::session::{self, PAUSE};
use baton_sockets::{ListenOptions, TcpListener};
use smallvec::SmallVec;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Listeners of the adapter, one for each version of IP.
pub type Listening = SmallVec<[Arc<TcpListener>; 2]>;

/// A listener.
#[derive(Debug)]
pub struct Listener {
    addresses: Vec<SocketAddr>,
    options: ListenOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    listening: Listening,
    /// Addresses at which the adapter does not listen yet.
    missing: Vec<SocketAddr>,
    /// Time of the last attempt.
    tried_at: Option<Instant>,
    told: bool,
}

impl Listener {
    /// Creates a listener at these addresses. `share` identifies the listeners of other processes that may have the same addresses.
    pub fn new(addresses: Vec<SocketAddr>, share: u32) -> Self {
        let state = State {
            listening: Listening::new(),
            missing: addresses.clone(),
            tried_at: None,
            told: false,
        };
        Self {
            addresses,
            options: ListenOptions {
                share,
                ..Default::default()
            },
            state: Mutex::new(state),
        }
    }

    /// Returns the same listener for the child of fork(2), which shares the addresses with its parent.
    pub fn for_child(&self) -> Self {
        Self::new(self.addresses.clone(), self.options.share)
    }

    /// Returns the adapter's listeners, after another attempt to create missing ones if it is due.
    pub fn listening(&self) -> Listening {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state.tried_at.is_none_or(|at| at.elapsed() >= PAUSE);
        if !state.missing.is_empty() && is_due {
            state.attempt(self.options);
        }
        state.listening.clone()
    }

    /// Returns the longest time to wait: missing listeners have to be retried.
    pub fn longest_wait(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (!state.missing.is_empty()).then_some(PAUSE)
    }
}

impl State {
    fn attempt(&mut self, options: ListenOptions) {
        self.tried_at = Some(Instant::now());
        let Some(adapter) = session::adapter() else {
            return;
        };
        let told = std::mem::replace(&mut self.told, true);
        let listening = &mut self.listening;
        self.missing.retain(|&address| {
            let error = match TcpListener::bind_with(adapter, address, options) {
                Ok(listener) => {
                    // The call waits, not the socket.
                    let set = listener.set_nonblocking(true);
                    debug_assert!(set.is_ok());
                    tell(format_args!("listening at {address} on the adapter"));
                    listening.push(Arc::new(listener));
                    return false;
                }
                Err(error) => error,
            };
            let (reason, may_change) = match error.kind() {
                ErrorKind::AddrInUse => (Reason::AddressInUse, true),
                ErrorKind::AddrNotAvailable => (Reason::AddressNotAvailable, false),
                _ => (Reason::NotListening, true),
            };
            if !told || !may_change {
                reason.count(format_args!("{address}: {error}"));
            }
            may_change
        });
    }
}

//! Records for which user the broker has created each socket, because for the system these sockets belong to the broker.

use crate::repair::option;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of recorded sockets. Older ones cannot be taken out of the kernel again: their connections stay there.
const MOST: usize = 1 << 17;

/// Users of sockets, by the kernel's cookie of the socket, which is never reused.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<Sockets>);

#[derive(Debug, Default)]
struct Sockets {
    users: FxHashMap<u64, u32>,
    /// Oldest first.
    cookies: VecDeque<u64>,
}

impl Made {
    /// Records that a socket was created for this user.
    ///
    /// # Errors
    /// The kernel does not report the socket's cookie.
    pub(super) fn add(&self, socket: BorrowedFd<'_>, user: u32) -> io::Result<()> {
        let cookie = cookie_of(socket)?;
        let mut sockets = self.lock();
        if sockets.cookies.len() == MOST
            && let Some(oldest) = sockets.cookies.pop_front()
        {
            sockets.users.remove(&oldest);
        }
        sockets.users.insert(cookie, user);
        sockets.cookies.push_back(cookie);
        Ok(())
    }

    /// Returns whether a socket was created for this user.
    ///
    /// # Errors
    /// The kernel does not report the socket's cookie.
    pub(super) fn is_of(&self, socket: BorrowedFd<'_>, user: u32) -> io::Result<bool> {
        Ok(self.lock().users.get(&cookie_of(socket)?) == Some(&user))
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the kernel's number of a socket, which is never reused.
pub(super) fn cookie_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE)
}

//! Which sockets the broker has made for whom: the system takes them for the broker's own.

use crate::repair::option;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sockets that are known at most. An older one cannot be taken out of the kernel again: its connection stays there.
const MOST: usize = 1 << 17;

/// Users of sockets, by the kernel's cookie of each, which no other socket ever gets.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<Sockets>);

#[derive(Debug, Default)]
struct Sockets {
    users: FxHashMap<u64, u32>,
    /// Oldest first.
    cookies: VecDeque<u64>,
}

impl Made {
    /// A socket was made for this user.
    ///
    /// # Errors
    /// The kernel does not tell its cookie.
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

    /// Whether a socket was made for this user.
    ///
    /// # Errors
    /// The kernel does not tell its cookie.
    pub(super) fn is_of(&self, socket: BorrowedFd<'_>, user: u32) -> io::Result<bool> {
        Ok(self.lock().users.get(&cookie_of(socket)?) == Some(&user))
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cookie_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE)
}

//! Combines several sockets into one descriptor to wait for.

use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A descriptor that is ready when any of several sockets has received something.
#[derive(Debug)]
pub(super) struct Any {
    fd: OwnedFd,
    /// Whether the descriptor is also ready when the first socket has space to send.
    waits_for_room: bool,
}

impl Any {
    /// Combines these sockets; returns `None` for a single socket, which needs no combination.
    pub(super) fn of<'a>(
        sockets: impl ExactSizeIterator<Item = BorrowedFd<'a>>,
    ) -> io::Result<Option<Self>> {
        if sockets.len() == 1 {
            return Ok(None);
        }
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, socket) in sockets.enumerate() {
            let data = EventData::new_u64(number as u64);
            epoll::add(&fd, socket, data, EventFlags::IN)?;
        }
        Ok(Some(Self {
            fd,
            waits_for_room: false,
        }))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sets whether the descriptor is also ready when the first socket has space to send.
    pub(super) fn wait_for_room(&mut self, first: BorrowedFd<'_>, waits: bool) -> io::Result<()> {
        if waits != self.waits_for_room {
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, waits);
            epoll::modify(&self.fd, first, EventData::new_u64(0), flags)?;
            self.waits_for_room = waits;
        }
        Ok(())
    }
}

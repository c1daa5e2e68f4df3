//! Doorbells, each of which is a pipe.

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The writing end, which rings the bell.
#[derive(Debug)]
pub(super) struct Button(OwnedFd);

/// The reading end, which is woken up.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

/// Creates a doorbell. Both ends are nonblocking and closed on exec.
pub(super) fn doorbell() -> io::Result<(Button, Bell)> {
    let (heard, rings) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((Button(rings), Bell(heard)))
}

impl Button {
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Rings the bell. If the pipe is full, the other side will wake up anyway. If the other side is gone, this side's own bell reports it;
    /// the system also raises SIGPIPE, which Rust programs ignore by default.
    pub fn ring(&self) {
        while rustix::io::write(&self.0, &[1]) == Err(Errno::INTR) {}
    }
}

impl AsFd for Button {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Bell {
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Makes it silent again; false when nobody can ring it any more: the other side is gone.
    pub fn silence(&self) -> bool {
        let mut rung = [0; 64];
        loop {
            match rustix::io::read(&self.0, &mut rung[..]) {
                Ok(0) => return false,
                Ok(len) if len < rung.len() => return true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

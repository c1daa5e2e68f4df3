//! Doorbells: a pipe each.

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The end that rings.
#[derive(Debug)]
pub(super) struct Button(OwnedFd);

/// The end that is heard.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

/// A doorbell. Neither end blocks, nor is it kept by a program that is executed.
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

    /// Rings. If the pipe is full, the other side will wake up anyway; if nobody hears it, that side's own bell tells. Then the system
    /// raises SIGPIPE too, which programs in Rust ignore unless they say otherwise.
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

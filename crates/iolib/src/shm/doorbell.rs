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

    /// Silences the bell, and returns the number of rings; `None` if the other side is gone, so that nobody can ring any more.
    pub fn silence(&self) -> Option<u32> {
        let mut rung = [0; 64];
        let mut rings = 0_u32;
        loop {
            match rustix::io::read(&self.0, &mut rung[..]) {
                Ok(0) => return None,
                Ok(len) => {
                    rings = rings.saturating_add(len as u32);
                    if len < rung.len() {
                        return Some(rings);
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return (error == Errno::AGAIN).then_some(rings),
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

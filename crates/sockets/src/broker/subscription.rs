//! The stream on which a broker asks an application where its connections are.

use super::messages::{self, DONE, SUBSCRIBE, TELL};
use crate::kernel::ApplicationAnswer;
use baton_iolib::unix_socket;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Maximum wait for the broker to read an answer; a broker that has asked reads it sooner.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A stream on which a broker asks.
#[derive(Debug)]
pub(crate) struct Subscription(UnixStream);

impl Subscription {
    /// Subscribes to the questions of the broker at `path`.
    ///
    /// # Errors
    /// No broker listens there.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let stream = unix_socket::connect(path)?;
        messages::limit_waits(&stream, LONGEST_WAIT)?;
        messages::send(&stream, SUBSCRIBE, &[], &[])?;
        Ok(Self(stream))
    }

    /// Answers the broker's question, if there is one.
    ///
    /// # Errors
    /// The broker is gone, or asks an unknown question.
    pub(crate) fn answer(&self, with: impl FnOnce() -> ApplicationAnswer) -> io::Result<()> {
        // The event that woke the application may stem from the previous broker.
        match recv(&self.0, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => return Ok(()),
            found => found?,
        };
        match messages::receive(&self.0)? {
            Some(question) if question.kind == TELL => {
                let text = serde_json::to_vec(&with())?;
                messages::send(&self.0, DONE, &text, &[])
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

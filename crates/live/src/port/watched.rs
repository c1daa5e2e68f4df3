//! Watches an interface while a port uses it.

use super::LinkInfo;
use super::interface::InterfaceError;
use super::link_state::LinkWatch;
use baton_wire::{Span, Time};
use std::io;

/// Interval between queries to the kernel.
const BETWEEN_LOOKS: Span = Span::from_ms(200);

/// A port's interface, which is checked regularly for its existence and its MTU.
#[derive(Debug)]
pub(super) struct Watched {
    link: LinkInfo,
    /// MTU for which the port was created, bytes: its buffers fit no more.
    most: u16,
    watch: LinkWatch,
    next: Time,
}

impl Watched {
    /// Watches the interface that `link` describes, in this thread's network namespace.
    ///
    /// # Errors
    /// The interface does not exist.
    pub(super) fn new(link: LinkInfo) -> Result<Self, InterfaceError> {
        Ok(Self {
            most: link.mtu,
            watch: LinkWatch::of(&link.name)?,
            link,
            next: Time::ZERO,
        })
    }

    /// Returns the known properties of the interface.
    pub(super) fn link(&self) -> &LinkInfo {
        &self.link
    }

    /// Queries the kernel if it is time to.
    ///
    /// # Errors
    /// The interface is gone.
    pub(super) fn look(&mut self, now: Time) -> io::Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + BETWEEN_LOOKS;
        match self.watch.ask() {
            Ok(state) => {
                let mtu = u16::try_from(state.mtu).unwrap_or(u16::MAX);
                self.link.mtu = mtu.min(self.most);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Err(error),
            // Ask the kernel again next time.
            Err(_) => Ok(()),
        }
    }
}

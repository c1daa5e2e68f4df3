//! What becomes of an interface while a port is on it.

use super::LinkInfo;
use super::interface::InterfaceError;
use super::link_state::LinkWatch;
use baton_wire::{Span, Time};
use std::io;

/// The kernel is asked so often.
const BETWEEN_LOOKS: Span = Span::from_ms(200);

/// A port's interface, of which it is looked after whether it is there, and how long its packets may be.
#[derive(Debug)]
pub(super) struct Watched {
    link: LinkInfo,
    /// What the port was made for, bytes: there is no room for more.
    most: u16,
    watch: LinkWatch,
    next: Time,
}

impl Watched {
    /// The interface that `link` describes, in this thread's network namespace.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(link: LinkInfo) -> Result<Self, InterfaceError> {
        Ok(Self {
            most: link.mtu,
            watch: LinkWatch::of(&link.name)?,
            link,
            next: Time::ZERO,
        })
    }

    /// What is known of it.
    pub(super) fn link(&self) -> &LinkInfo {
        &self.link
    }

    /// Asks the kernel, if it is time to.
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
            // The kernel is asked again.
            Err(_) => Ok(()),
        }
    }
}

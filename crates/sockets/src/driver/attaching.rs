//! Losing the adapter and attaching to another.

use super::Driver;
use crate::link::HostEnd;
use baton_bus::link::LinkError;
use baton_iolib::{AnyHostLink, ConnectError};
use rustix::event::epoll;
use std::io;

/// Event data of the link in the epoll instance.
const LINK: epoll::EventData = epoll::EventData::new_u64(0);

/// Why there is no adapter.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The link was lost.
    #[error("{}", lost(.0))]
    Lost(LinkError),
    /// No other adapter was found.
    #[error("cannot attach to an adapter: {0}")]
    NotFound(ConnectError),
    /// The system has no resources for another link.
    #[error("no memory or file descriptors for the link: {0}")]
    NoRoom(io::Error),
}

/// Describes to an application how the link was lost.
fn lost(error: &LinkError) -> String {
    match error {
        LinkError::Gone => "the adapter is gone".to_owned(),
        LinkError::Violation(violation) => {
            format!("the adapter violated the protocol: {violation}")
        }
    }
}

impl Driver {
    /// Returns why there is no adapter, if there is none.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Returns whether there is no adapter and it is time to look for one.
    pub(crate) fn retry_is_due(&self) -> bool {
        self.end.link.is_lost() && self.now() >= self.retry.at()
    }

    /// Handles the outcome of an attempt to attach. Returns true if an adapter is attached now.
    pub(crate) fn handle_attempt(&mut self, found: Result<AnyHostLink, ConnectError>) -> bool {
        let trouble = match found {
            // Another thread was faster.
            Ok(_) if !self.end.link.is_lost() => return true,
            Ok(link) => match self.install(link) {
                Ok(()) => return true,
                Err(error) => Trouble::NoRoom(error),
            },
            Err(error) => Trouble::NotFound(error),
        };
        self.trouble = Some(trouble);
        self.retry.failed(self.now());
        false
    }

    /// Installs a new link. The next turn sets up the listeners again.
    pub(super) fn install(&mut self, link: AnyHostLink) -> io::Result<()> {
        self.end.os.limit_sends(link.geometry().most_sends);
        let link = HostEnd::Attached(link);
        if let Some((fd, interest)) = link.interest() {
            epoll::add(&self.epoll, fd, LINK, interest)?;
            self.watched = interest;
        }
        self.end.link = link;
        self.trouble = None;
        Ok(())
    }

    /// Gives up the link, and with it all its connections.
    pub(crate) fn lose(&mut self, error: LinkError) {
        let now = self.now();
        if matches!(error, LinkError::Gone) {
            // The adapter's last messages still count. Errors in them no longer matter.
            let _ = self.end.os.gather(now, &mut self.end.link);
        }
        // Closing the old link's descriptor removes it from the epoll instance.
        self.end.link = HostEnd::Lost(*self.end.link.counters());
        self.links_lost += 1;
        self.trouble = Some(Trouble::Lost(error));
        self.retry.begin(now);
        self.end.os.handle_link_lost(now);
    }

    /// Makes the epoll instance wait for what the link needs.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if let Some((fd, interest)) = self.end.link.interest()
            && interest != self.watched
        {
            epoll::modify(&self.epoll, fd, LINK, interest)?;
            self.watched = interest;
        }
        Ok(())
    }
}

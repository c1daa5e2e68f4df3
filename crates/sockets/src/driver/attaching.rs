//! Losing the adapter, and finding it again.

use super::Driver;
use crate::link::HostEnd;
use baton_bus::link::LinkError;
use baton_iolib::{AnyHostLink, ConnectError};
use rustix::event::epoll;
use std::io;

/// The number of the link among the events of the epoll instance.
const LINK: epoll::EventData = epoll::EventData::new_u64(0);

/// Why there is no adapter.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The link was lost.
    #[error("{}", lost(.0))]
    Lost(LinkError),
    /// No other was found.
    #[error("no adapter: {0}")]
    NotFound(ConnectError),
    /// There is no room for another link.
    #[error("no room for the link: {0}")]
    NoRoom(io::Error),
}

/// How the link was lost, as an application sees it.
fn lost(error: &LinkError) -> String {
    match error {
        LinkError::Gone => "the adapter is gone".to_owned(),
        LinkError::Violation(violation) => format!("the adapter broke the rules: {violation}"),
    }
}

impl Driver {
    /// Why there is no adapter, if there is none.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Whether there is no adapter and it is time to look for one.
    pub(crate) fn retry_is_due(&self) -> bool {
        self.end.link.is_lost() && self.now() >= self.retry.at()
    }

    /// Somebody has looked for an adapter while there was none. True when it was found.
    pub(crate) fn handle_attempt(&mut self, found: Result<AnyHostLink, ConnectError>) -> bool {
        let trouble = match found {
            // Somebody else was quicker.
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

    /// Goes on with this link. Listeners are set up again by the next turn.
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

    /// The link is of no use any more, and all connections with it.
    pub(crate) fn lose(&mut self, error: LinkError) {
        let now = self.now();
        if matches!(error, LinkError::Gone) {
            // Its last words count. What is wrong with them is of no consequence any more.
            let _ = self.end.os.gather(now, &mut self.end.link);
        }
        // Closing its descriptor takes it off the epoll instance.
        self.end.link = HostEnd::Lost(*self.end.link.counters());
        self.links_lost += 1;
        self.trouble = Some(Trouble::Lost(error));
        self.retry.begin(now);
        self.end.os.handle_link_lost(now);
    }

    /// Sees to it that the epoll instance waits for what the link wants.
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

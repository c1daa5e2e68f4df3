//! Sockets through which applications attach.

use crate::error::LiveError;
use baton_iolib::{AdapterListener, AnyAdapterLink, Limits, Refusal, TcpAdapterListener};
use rustix::event::PollFlags;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// A Unix socket for applications on this machine, and optionally a TCP port for those on other machines.
pub struct Listeners {
    local: AdapterListener,
    remote: Option<TcpAdapterListener>,
}

impl Listeners {
    /// Listens at `path` and, if given, at `address`.
    ///
    /// # Errors
    /// A socket cannot be opened; the message says what to do.
    pub fn open(
        path: &Path,
        address: Option<SocketAddr>,
        limits: Limits,
    ) -> Result<Self, LiveError> {
        let local = AdapterListener::bind(path, limits).map_err(|error| {
            LiveError::BadInput(format!("--listen {}: {error}", path.display()))
        })?;
        let listen = |address| {
            TcpAdapterListener::bind(address, limits)
                .map_err(|error| LiveError::BadInput(format!("--listen-tcp {address}: {error}")))
        };
        let remote = address.map(listen).transpose()?;
        Ok(Self { local, remote })
    }

    /// Accepts the next application that may attach, given the users of those that are attached already.
    pub(super) fn next(&mut self, attached: &[Option<u32>]) -> Option<AnyAdapterLink> {
        if let Some(link) = self.local.accept(attached) {
            return Some(link.into());
        }
        let link = self.remote.as_mut()?.accept(attached)?;
        Some(link.into())
    }

    /// Returns the descriptors to wait for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        let mut fds = self.local.fds();
        fds.extend(self.remote.iter().flat_map(TcpAdapterListener::fds));
        fds
    }

    /// Applications that were refused, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = &(Refusal, u64)> {
        let remote = self.remote.iter().flat_map(TcpAdapterListener::refusals);
        self.local.refusals().iter().chain(remote)
    }
}

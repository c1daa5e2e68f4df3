//! Where applications come in.

use crate::error::LiveError;
use baton_iolib::{AdapterListener, AnyAdapterLink, Limits, Refusal, TcpAdapterListener};
use rustix::event::PollFlags;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// A Unix socket for applications of this machine, and a TCP port for those of others, if there is to be one.
pub struct Listeners {
    local: AdapterListener,
    remote: Option<TcpAdapterListener>,
}

impl Listeners {
    /// Listens at `path`, and at `address`.
    ///
    /// # Errors
    /// They cannot be had; the message says what to do.
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

    /// The next application that may be attached, beside those of these users.
    pub(super) fn next(&mut self, attached: &[Option<u32>]) -> Option<AnyAdapterLink> {
        if let Some(link) = self.local.accept(attached) {
            return Some(link.into());
        }
        let link = self.remote.as_mut()?.accept(attached)?;
        Some(link.into())
    }

    /// What they wait for.
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

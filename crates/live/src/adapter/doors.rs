//! Where applications come in.

use crate::error::LiveError;
use baton_iolib::{AdapterListener, Limits, Refusal, ShmAdapter};
use rustix::event::PollFlags;
use smallvec::SmallVec;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The socket for applications of this machine.
pub struct Doors {
    local: AdapterListener,
}

impl Doors {
    /// Listens at `path`.
    ///
    /// # Errors
    /// It cannot be had; the message says what to do.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, LiveError> {
        let local = AdapterListener::bind(path, limits).map_err(|error| {
            LiveError::BadInput(format!("--listen {}: {error}", path.display()))
        })?;
        Ok(Self { local })
    }

    /// The next application that may be attached, while so many are.
    pub(super) fn next(&mut self, attached: usize) -> Option<ShmAdapter> {
        self.local.accept(attached)
    }

    /// What it waits for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        self.local.fds()
    }

    /// Applications that were refused, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = &(Refusal, u64)> {
        self.local.refusals().iter()
    }
}

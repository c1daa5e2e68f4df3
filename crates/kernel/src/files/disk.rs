//! The disk below the file cache: requests of reads, and their completion.

use super::Files;
use super::cache::Held;
use crate::footprint::{self, PAGE_BYTES};
use crate::meter::Meter;
use baton_host::{FileId, SocketId};
use baton_wire::Payload;
use smallvec::SmallVec;

/// A read of pages from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRead {
    /// Identifies the read in [`FileSystem::handle_disk`](crate::FileSystem::handle_disk).
    pub token: u64,
    /// The file.
    pub file: FileId,
    /// Number of the first page within the file.
    pub first_page: u32,
    /// Number of pages.
    pub pages: u32,
}

impl<P: Payload> Files<P> {
    /// Returns the next read for the disk.
    pub(super) fn poll_disk(&mut self) -> Option<DiskRead> {
        self.cache.as_mut()?.asked.pop_front()
    }

    /// Puts the first `len` bytes of a file into memory, as if they had just been sent.
    pub(super) fn preload(&mut self, file: FileId, len: u64) {
        let Some(cache) = &mut self.cache else {
            return;
        };
        for number in 0..len.div_ceil(u64::from(PAGE_BYTES)) as u32 {
            cache.preload(file, number, &mut self.evicted);
        }
    }

    /// Reports whether the application sleeps until a disk read is done.
    pub(super) fn application_sleeps(&self) -> bool {
        self.sleeps_for.is_some()
    }

    /// Completes a disk read. Returns the sockets that wait for the read, according to `waits`, and the pages that are wired for them.
    pub(super) fn disk_done<M: Meter>(
        &mut self,
        token: u64,
        waits: impl Fn(SocketId) -> bool,
        m: &mut M,
    ) -> SmallVec<[Held; 2]> {
        let Some(cache) = &mut self.cache else {
            return SmallVec::new();
        };
        let arrived = cache.arrived(token, waits, &mut self.evicted);
        self.sleeps_for = self.sleeps_for.filter(|&awaited| awaited != token);
        let Some((read, held)) = arrived else {
            return SmallVec::new();
        };
        footprint::disk_done(m, read.pages, self.evicted.len() as u32);
        held
    }
}

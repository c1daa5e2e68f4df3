//! The disk behind the file cache: reads go out, and what follows when they are done.

use super::Files;
use super::cache::Held;
use crate::footprint::{self, PAGE_BYTES};
use crate::kernel::Kernel;
use crate::meter::{Meter, NoMeter, Owner};
use crate::sockets::{FileId, SocketId};
use baton_wire::Payload;
use smallvec::SmallVec;

/// Pages that are to be read from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRead {
    /// Names the read in [`Kernel::handle_disk`].
    pub token: u64,
    /// The file.
    pub file: FileId,
    /// Number of the first page within the file.
    pub first_page: u32,
    /// Pages.
    pub pages: u32,
}

impl<P: Payload> Files<P> {
    /// The next read for the disk.
    pub(super) fn poll_disk(&mut self) -> Option<DiskRead> {
        self.cache.as_mut()?.asked.pop_front()
    }

    /// The first `len` bytes of a file are in memory, as if they had been sent just now.
    pub(super) fn preload(&mut self, file: FileId, len: u64) {
        let Some(cache) = &mut self.cache else {
            return;
        };
        for number in 0..len.div_ceil(u64::from(PAGE_BYTES)) as u32 {
            cache.preload(file, number, &mut self.evicted);
        }
    }

    /// Whether the application sleeps until a read of the disk is over.
    pub(super) fn application_sleeps(&self) -> bool {
        self.sleeps_for.is_some()
    }

    /// The disk is done with a read. Gives the sockets that wait for it, by what `waits` says of each, and the pages that are wired for
    /// them.
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

impl<P: Payload> Kernel<P> {
    /// The next read for the disk.
    pub fn poll_disk(&mut self) -> Option<DiskRead> {
        self.files.poll_disk()
    }

    /// The first `len` bytes of a file are in memory, as if they had been sent just now: what a server that has run for long
    /// begins with. Nothing is charged. Of a file cache without limit nothing changes.
    pub fn preload(&mut self, file: FileId, len: u64) {
        self.files.preload(file, len);
        self.leave_memory(&mut NoMeter);
    }

    /// Whether the application sleeps until a read of the disk is over: meanwhile it must not run, nothing else is held up.
    pub fn application_sleeps(&self) -> bool {
        self.files.application_sleeps()
    }

    /// The disk is done with a read, and its data is in memory.
    pub fn handle_disk<M: Meter>(&mut self, token: u64, m: &mut M) {
        m.owner(Owner::Host);
        let sockets = &self.sockets;
        let waits = |id: SocketId| {
            let socket = sockets.get(id);
            socket.is_some_and(|socket| socket.reader.waits_for_read == Some(token))
        };
        for (id, frame) in self.files.disk_done(token, waits, m) {
            self.files.hold_for(&mut self.sockets[id].reader, frame);
            self.wake_writer(id, m);
        }
        self.leave_memory(m);
        self.wake_memory_waiter(m);
    }

    /// Pages have left main memory: their blocks leave the NICs' caches, for the one includes the others (data-caching 4.2).
    pub(crate) fn leave_memory<M: Meter>(&mut self, m: &mut M) {
        while let Some((file, number)) = self.files.poll_evicted() {
            self.drop_blocks_of_page(file, number, m);
        }
    }
}

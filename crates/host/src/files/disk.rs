//! The disk behind the file cache: reads go out, and what follows when they are done.

use crate::footprint;
use crate::footprint::PAGE_BYTES;
use crate::kernel::Kernel;
use crate::meter::{Meter, NoMeter, Owner};
use crate::sockets::{FileId, SocketId};
use baton_wire::Payload;

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

impl<P: Payload> Kernel<P> {
    /// The next read for the disk.
    pub fn poll_disk(&mut self) -> Option<DiskRead> {
        self.files.cache.as_mut()?.asked.pop_front()
    }

    /// The first `len` bytes of a file are in memory, as if they had been sent just now: what a server that has run for long
    /// begins with. Nothing is charged. Of a file cache without limit nothing changes.
    pub fn preload(&mut self, file: FileId, len: u64) {
        let Some(cache) = &mut self.files.cache else {
            return;
        };
        let mut evicted = std::mem::take(&mut self.evicted);
        for number in 0..len.div_ceil(u64::from(PAGE_BYTES)) as u32 {
            cache.preload(file, number, &mut evicted);
        }
        self.leave_memory(&mut evicted, &mut NoMeter);
        self.evicted = evicted;
    }

    /// Whether the application sleeps until a read of the disk is over: meanwhile it must not run, nothing else is held up.
    pub fn application_sleeps(&self) -> bool {
        self.sleeps_for.is_some()
    }

    /// The disk is done with a read, and its data is in memory.
    pub fn handle_disk<M: Meter>(&mut self, token: u64, m: &mut M) {
        m.owner(Owner::Host);
        let Some(cache) = &mut self.files.cache else {
            return;
        };
        let mut evicted = std::mem::take(&mut self.evicted);
        let sockets = &self.sockets;
        let waits = |id: SocketId| {
            let socket = sockets.get(id);
            socket.is_some_and(|socket| socket.waits_for_read == Some(token))
        };
        let arrived = cache.arrived(token, waits, &mut evicted);
        self.sleeps_for = self.sleeps_for.filter(|&awaited| awaited != token);
        if let Some((read, held)) = arrived {
            footprint::disk_done(m, read.pages, evicted.len() as u32);
            for (id, frame) in held {
                self.sockets[id].waits_for_read = None;
                let before = self.sockets[id].held_page.replace(frame);
                if let Some(frame) = before {
                    self.unwire(frame);
                }
                self.wake_writer(id, m);
            }
        }
        self.leave_memory(&mut evicted, m);
        self.evicted = evicted;
        self.wake_memory_waiter(m);
    }

    /// Pages have left main memory: their blocks leave the NICs' caches, for the one includes the others (data-caching 4.2).
    pub(crate) fn leave_memory<M: Meter>(&mut self, evicted: &mut Vec<(FileId, u32)>, m: &mut M) {
        for (file, number) in evicted.drain(..) {
            self.drop_blocks_of_page(file, number, m);
        }
    }
}

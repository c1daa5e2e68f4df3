//! Changes of files: by remote writers, by other processes.

use super::{FileStore, Files};
use crate::footprint::PAGE_BYTES;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::sockets::FileId;
use baton_wire::Payload;

impl<P: Payload> Files<P> {
    /// `len` bytes from `offset` on of a file, at least one, are changed. Pages that are not in memory as they are now are added to
    /// those that have left it.
    pub(crate) fn edit(&mut self, file: FileId, offset: u64, len: u64) {
        let store = self.store.as_mut();
        let appends = store.is_some_and(|store| offset >= store.len(file, 0));
        let revision = self.next_revision(file, appends);
        if let Some(store) = &mut self.store {
            store.edit(file, revision, offset, len);
        }
        let page = |offset: u64| (offset / u64::from(PAGE_BYTES)) as u32;
        if let Some(cache) = &mut self.cache {
            for number in page(offset)..=page(offset + len - 1) {
                if !cache.replace(file, number, &mut self.evicted) {
                    self.evicted.push_back((file, number));
                }
            }
        }
    }

    /// A file ends at `len` from now on.
    pub(crate) fn truncate(&mut self, file: FileId, len: u64) {
        let revision = self.next_revision(file, false);
        if let Some(store) = &mut self.store {
            store.truncate(file, revision, len);
        }
        let first = len.div_ceil(u64::from(PAGE_BYTES)) as u32;
        if let Some(cache) = &mut self.cache {
            for number in cache.pages_from(file, first) {
                cache.forget(file, number);
                self.evicted.push_back((file, number));
            }
            // The last page lost its end, which a new one of it has not.
            if let Some(last) = first
                .checked_sub(1)
                .filter(|_| !len.is_multiple_of(u64::from(PAGE_BYTES)))
                && cache.find(file, last).is_some()
                && !cache.replace(file, last, &mut self.evicted)
            {
                self.evicted.push_back((file, last));
            }
        }
    }
}

impl<P: Payload> Kernel<P> {
    /// From now on the kernel itself finds the content of what `sendfile` sends, in `store`; without one it sends what the
    /// application gives it, and nothing of it is ever cached.
    pub fn set_file_store(&mut self, store: Box<dyn FileStore<P>>) {
        self.files.store = Some(store);
    }

    /// The present revision of a file; 0 for one that was never changed.
    pub fn file_revision(&self, file: FileId) -> u32 {
        self.files.revision(file)
    }

    /// What is sent of `file` from now on is not asked for again (a live stream): its blocks leave a NIC's cache as soon as all
    /// that has been given to sockets is acknowledged.
    pub fn set_transient(&mut self, file: FileId) {
        self.files.transient.insert(file);
    }

    /// What is sent of a transient file now will be sent to others, too: its blocks stay until [`Kernel::let_go`].
    pub fn hold(&mut self, file: FileId) {
        self.files.held.insert(file);
    }

    /// All that are to have what is in the blocks of a transient file have been given it: a block goes as soon as it is delivered.
    pub fn let_go<M: Meter>(&mut self, file: FileId, m: &mut M) {
        if self.files.held.remove(&file) {
            self.remove_delivered(file, m);
        }
    }

    /// `len` bytes from `offset` on of a file are changed. What is being sent goes on as it was.
    pub fn edit<M: Meter>(&mut self, file: FileId, offset: u64, len: u64, m: &mut M) {
        if len == 0 {
            return;
        }
        self.files.edit(file, offset, len);
        self.leave_memory(m);
        self.file_changed(file, offset, Some(len), m);
    }

    /// A file ends at `len` from now on. Of what is beyond, only that is still sent which was given to a socket before, and the
    /// rest of the page of which some was: `sendfile` of more answers [`Gone`](crate::Gone), and the application must close the connection.
    pub fn truncate<M: Meter>(&mut self, file: FileId, len: u64, m: &mut M) {
        self.files.truncate(file, len);
        self.leave_memory(m);
        self.file_changed(file, len, None, m);
    }
}

//! Changes of files by remote writers or by other processes.

use super::Files;
use crate::footprint::PAGE_BYTES;
use baton_host::FileId;
use baton_wire::Payload;

impl<P: Payload> Files<P> {
    /// Changes `len` bytes (at least one) of a file from `offset` on. Pages whose current content is not in memory are reported as evicted.
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

    /// Truncates a file to `len` bytes.
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
            // The last page lost its end, so a new version of the page replaces it.
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

//! Cached blocks whose files change (data-caching 4.2).

use super::super::OsLayer;
use crate::FileId;
use crate::nic_cache::{Content, OnChange};
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_wire::Time;

/// A change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub file: FileId,
    /// The revision from now on.
    pub revision: u32,
    /// The first byte that has changed.
    pub offset: u64,
    /// Number of changed bytes; `None` if the file now ends at `offset`.
    pub len: Option<u64>,
}

impl<P: Inline> OsLayer<P> {
    /// Handles a change of a file as the coherence protocol says; the lazy protocol need not be notified. `block` returns the current
    /// content of the file at an offset, up to a length: less if the file ends before, `None` if the content is not available.
    pub(in crate::adapter) fn file_changed<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        change: &FileChange,
        mut block: impl FnMut(u64, u32) -> Option<P>,
    ) {
        let &FileChange {
            file,
            revision,
            offset,
            len,
        } = change;
        let Some(caching) = &mut self.caching else {
            return;
        };
        let on_change = caching.coherence.on_change();
        if on_change == OnChange::Leave {
            return;
        }
        caching.revisions.insert(file, revision);
        for number in caching.cache.changed_blocks(file, offset, len) {
            let bytes = self.config.nic_cache.block_bytes;
            let Some(caching) = &mut self.caching else {
                return;
            };
            if !caching.cache.remove(file, number) {
                continue;
            }
            let content = match on_change {
                OnChange::Update => block(u64::from(number) * u64::from(bytes), bytes),
                OnChange::Leave | OnChange::Remove => None,
            };
            let content = content.filter(|data| {
                let len = data.len() as u32;
                len > 0 && self.may_insert(link, len, 1)
            });
            self.update(now, link, (file, number, revision), content);
        }
    }

    /// Called when `len` bytes at `offset` of a file, at least one, have left main memory: their blocks leave the adapter's cache
    /// (inclusion, data-caching 4.2). Returns how many blocks left.
    pub fn file_left_memory(&mut self, file: FileId, offset: u64, len: u64) -> u32 {
        let mut left = 0;
        if let Some(caching) = &mut self.caching {
            caching.cache.exclude(file, offset, len, |_| left += 1);
        }
        left
    }

    /// Removes a block of a transient file from the adapter's cache after it was delivered to all receivers (data-caching 4.2). Returns
    /// false if the block was not there.
    pub fn block_delivered(&mut self, file: FileId, number: u32) -> bool {
        let caching = self.caching.as_mut();
        caching.is_some_and(|caching| caching.cache.remove_delivered(file, number))
    }

    /// Puts the new content of a removed block into its slot, if there is content.
    fn update<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        (file, number, revision): (FileId, u32, u32),
        content: Option<P>,
    ) {
        let Some(caching) = &mut self.caching else {
            return;
        };
        let slot = caching.cache.update(content.is_some());
        if let Some((slot, data)) = slot.zip(content) {
            let part = Content {
                file,
                number,
                within: 0,
                len: data.len() as u32,
                revision,
            };
            self.fill(now, link, slot, &part, data);
        }
    }
}

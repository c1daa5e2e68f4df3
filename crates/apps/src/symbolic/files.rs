//! Files whose content follows from their names, for a kernel that reads content on its own.

use super::{FILES, file_content};
use baton_host::FileId;
use baton_kernel::FileStore;
use baton_wire::Symbolic;
use rustc_hash::FxHashMap;

/// Unit in which a file's content is versioned, bytes.
const PAGE_BYTES: u64 = 4096;

/// State of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct File {
    len: u64,
    /// Whether the file was truncated or edited. From then on, requests no longer extend its length.
    fixed: bool,
    /// Revision at which each page was last changed; pages after the last entry never were.
    pages: Vec<u32>,
}

impl File {
    fn touch(&mut self, revision: u32, pages: std::ops::Range<u64>) {
        if self.pages.len() < pages.end as usize {
            self.pages.resize(pages.end as usize, 0);
        }
        self.pages[pages.start as usize..pages.end as usize].fill(revision);
    }
}

/// All possible files. The length of each file is that of the longest request for it, until the file is changed.
#[derive(Clone, Debug, Default)]
pub struct SymbolicFiles {
    files: FxHashMap<FileId, File>,
}

impl SymbolicFiles {
    /// Creates files that were neither requested nor changed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the length of a file, which requests no longer extend.
    pub fn set_len(&mut self, file: FileId, len: u64) {
        let file = self.files.entry(file).or_default();
        (file.len, file.fixed) = (len, true);
    }
}

impl FileStore<Symbolic> for SymbolicFiles {
    fn len(&mut self, file: FileId, asked: u64) -> u64 {
        let file = self.files.entry(file).or_default();
        if !file.fixed {
            file.len = file.len.max(asked);
        }
        file.len
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> Symbolic {
        debug_assert!(file.0 < FILES, "{file:?} has a number below {FILES}");
        let page = (offset / PAGE_BYTES) as usize;
        let pages = self.files.get(&file).map_or(&[][..], |file| &file.pages);
        let revision = pages.get(page).copied().unwrap_or(0);
        file_content(file.0, revision, offset, len)
    }

    fn edit(&mut self, file: FileId, revision: u32, offset: u64, len: u64) {
        let file = self.files.entry(file).or_default();
        file.fixed = true;
        // The bytes between the old end and the change become zeros, which is a change too; but a page that only grows keeps the revision
        // of its content.
        let first = if offset >= file.len {
            file.len.div_ceil(PAGE_BYTES)
        } else {
            offset / PAGE_BYTES
        };
        file.len = file.len.max(offset + len);
        let end = (offset + len).div_ceil(PAGE_BYTES);
        file.touch(revision, first.min(end)..end);
    }

    fn truncate(&mut self, file: FileId, revision: u32, len: u64) {
        let file = self.files.entry(file).or_default();
        file.fixed = true;
        let end = file.len.max(len).div_ceil(PAGE_BYTES);
        file.touch(revision, len / PAGE_BYTES..end);
        file.len = len;
    }
}

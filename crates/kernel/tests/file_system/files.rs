//! Files with all their revisions. The source of a page is its file and the revision in which the page last changed.

use baton_host::{FileContent, FileId};
use baton_kernel::FileStore;
use baton_testkit::symbolic;
use baton_wire::Symbolic;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Unit within which content must be from one revision.
pub const PAGE_BYTES: u64 = 4096;

/// One revision of a file.
#[derive(Debug)]
struct Revision {
    /// The moment at which the revision became current.
    since: u64,
    len: u64,
    /// The pages that it changed.
    changed: Range<u64>,
}

/// All revisions of all files, and the moments (event numbers) at which they were current.
#[derive(Debug, Default)]
pub struct History {
    files: Vec<Vec<Revision>>,
    pub moment: u64,
}

/// Returns the pages of `len` bytes from `offset` on.
pub fn pages(offset: u64, len: u64) -> Range<u64> {
    offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES)
}

impl History {
    /// Returns the current length of a file.
    pub fn len(&self, file: FileId) -> u64 {
        let last = self.files[file.0 as usize].last();
        last.expect("a file has a revision").len
    }

    fn push(&mut self, file: FileId, revision: u32, len: u64, changed: Range<u64>) {
        let since = self.moment;
        let revisions = &mut self.files[file.0 as usize];
        let (number, next) = (revision as usize, revisions.len());
        assert_eq!(next, number, "revisions are numbered consecutively");
        revisions.push(Revision {
            since,
            len,
            changed,
        });
    }

    /// Returns whether a file has become shorter at some moment since `from`.
    pub fn was_truncated(&self, file: FileId, from: u64) -> bool {
        let pairs = self.files[file.0 as usize].windows(2);
        let mut later = pairs.filter(|pair| pair[1].since > from);
        later.any(|pair| pair[1].len < pair[0].len)
    }

    /// Returns the source of a page in a revision of its file.
    fn source(&self, file: FileId, revision: usize, page: u64) -> u64 {
        let mut revisions = self.files[file.0 as usize][..=revision].iter();
        let changed = revisions.rposition(|revision| revision.changed.contains(&page));
        u64::from(file.0) << 32 | changed.expect("the page exists") as u64
    }

    /// Asserts that `data` is the beginning of `content`, whose revision was current at some moment since `from`.
    pub fn verify(&self, content: &FileContent, data: Symbolic, from: u64) {
        let (file, number) = (content.file, content.revision as usize);
        let revisions = &self.files[file.0 as usize];
        let later = revisions.get(number + 1);
        assert!(
            later.is_none_or(|later| later.since > from),
            "{content:?} is of no revision that was current since {from}"
        );
        let end = content.offset + u64::from(data.len);
        assert!(end <= revisions[number].len && end <= content.file_len);
        assert_eq!(data.offset, content.offset);
        for page in pages(data.offset, data.len.into()) {
            let source = self.source(file, number, page);
            assert_eq!(data.source, source, "{content:?}, page {page}");
        }
    }
}

/// The files as the kernel sees them: their current revisions.
#[derive(Clone, Debug)]
pub struct Files(Arc<Mutex<History>>);

impl Files {
    pub fn new(lengths: &[u64]) -> Self {
        let mut history = History::default();
        for (file, &len) in (0..).map(FileId).zip(lengths) {
            history.files.push(Vec::new());
            history.push(file, 0, len, 0..u64::MAX);
        }
        Self(Arc::new(Mutex::new(history)))
    }

    pub fn history(&self) -> MutexGuard<'_, History> {
        let history = self.0.lock();
        history.expect("no thread panicked while it held the lock")
    }
}

impl FileStore<Symbolic> for Files {
    fn len(&mut self, file: FileId, _asked: u64) -> u64 {
        self.history().len(file)
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> Symbolic {
        let (history, pages) = (self.history(), pages(offset, len.into()));
        assert_eq!(pages.end, pages.start + 1, "reads lie within a page");
        assert!(offset + u64::from(len) <= history.len(file));
        let current = history.files[file.0 as usize].len() - 1;
        symbolic(history.source(file, current, pages.start), offset, len)
    }

    fn edit(&mut self, file: FileId, revision: u32, offset: u64, len: u64) {
        let mut history = self.history();
        let whole = history.len(file).max(offset + len);
        history.push(file, revision, whole, pages(offset, len));
    }

    fn truncate(&mut self, file: FileId, revision: u32, len: u64) {
        // Truncation does not change the remaining bytes.
        self.history().push(file, revision, len, 0..0);
    }
}

//! Identifies states of files, so that their content can be cached elsewhere under that identity.

use baton_host::FileId;
use rustc_hash::FxHashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of files whose numbers are remembered.
const MOST_FILES: usize = 1 << 16;
/// A second change within this many seconds may go unnoticed: file times are no finer than the system's clock ticks.
const SETTLED_S: i64 = 2;

/// The state of a file, as the file system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: SystemTime,
    /// Time of the last change of content or metadata (ctime), seconds and nanoseconds. Programs cannot set it.
    changed: (i64, i64),
    /// Device and inode number.
    inode: (u64, u64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> io::Result<Self> {
        Ok(Self {
            len: metadata.len(),
            modified: metadata.modified()?,
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        })
    }

    /// Returns whether the content is the same, judging by size and date. The file may have been renamed or removed.
    pub(super) fn has_content_of(&self, other: &Self) -> bool {
        (self.len, self.modified) == (other.len, other.modified)
    }

    /// Returns whether every later change will be visible in the stamp.
    pub(super) fn is_settled(&self, now_s: u64) -> bool {
        i64::try_from(now_s).is_ok_and(|now_s| now_s - self.changed.0 >= SETTLED_S)
    }
}

/// A state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub file: FileId,
    pub revision: u32,
}

/// Assigns numbers to files and to their states.
#[derive(Debug, Default)]
pub(super) struct Versions {
    by_path: FxHashMap<PathBuf, (Version, Stamp)>,
    next: u32,
}

impl Versions {
    /// Returns the version of the file at `path`, whose current state is `stamp`.
    pub(super) fn of(&mut self, path: &Path, stamp: Stamp) -> Version {
        if let Some((version, known)) = self.by_path.get_mut(path) {
            if *known != stamp {
                version.revision += 1;
                *known = stamp;
            }
            return *version;
        }
        if self.by_path.len() >= MOST_FILES {
            // The numbers are not reused: content that was cached under them is never found again.
            self.by_path.clear();
        }
        let version = Version {
            file: FileId(self.next),
            revision: 0,
        };
        self.next += 1;
        self.by_path.insert(path.to_owned(), (version, stamp));
        version
    }
}

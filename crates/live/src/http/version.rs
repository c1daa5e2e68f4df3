//! Which state of a file content is of, so that it can be kept under that name elsewhere.

use baton_host::FileId;
use rustc_hash::FxHashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files whose numbers are remembered at most.
const MOST_FILES: usize = 1 << 16;
/// Within so many seconds of a change another may leave no trace: dates are no finer than the system's clock ticks.
const SETTLED_S: i64 = 2;

/// What the file system tells of a file's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: SystemTime,
    /// Of content or metadata, seconds and nanoseconds. Nobody can set it.
    changed: (i64, i64),
    /// Device and number.
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

    /// Whether the content is the same, as far as size and date tell. The file may have been renamed or removed.
    pub(super) fn has_content_of(&self, other: &Self) -> bool {
        (self.len, self.modified) == (other.len, other.modified)
    }

    /// Whether each change from now on shows.
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

/// The numbers of files, and of their states.
#[derive(Debug, Default)]
pub(super) struct Versions {
    by_path: FxHashMap<PathBuf, (Version, Stamp)>,
    next: u32,
}

impl Versions {
    /// The state of the file at `path`, which `stamp` tells.
    pub(super) fn of(&mut self, path: &Path, stamp: Stamp) -> Version {
        if let Some((version, known)) = self.by_path.get_mut(path) {
            if *known != stamp {
                version.revision += 1;
                *known = stamp;
            }
            return *version;
        }
        if self.by_path.len() >= MOST_FILES {
            // Their numbers are not given again: what was kept under them is found no more.
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

//! The files of the root folder: small files are kept in memory, large files open. Both are checked against the file system once a second.

use super::path::relative_path;
use super::status::Status;
use super::version::{Stamp, Version, Versions};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of files in the cache. Each large file takes a descriptor.
const MOST_FILES: usize = 1024;
/// Maximum length of a request target that is cached.
const LONGEST_KEY: usize = 1024;

/// Sizes of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheConfig {
    /// Files up to this size are kept in memory, bytes.
    pub largest_bytes: u64,
    /// Maximum size of all files in memory, bytes.
    pub total_bytes: u64,
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheStats {
    pub hits: u64,
    pub misses: u64,
    /// Files that had changed since the last check.
    pub changed: u64,
}

/// A file in the state in which it was opened.
#[derive(Debug)]
pub(super) struct ServedFile {
    pub len: u64,
    pub modified: SystemTime,
    /// Header fields that depend on the file only.
    pub fields: String,
    /// Name under which the content can be cached elsewhere; `None` if the file changed very recently.
    pub version: Option<Version>,
    stamp: Stamp,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Memory(Bytes),
    Disk(File),
}

/// The result of looking up a request target.
#[derive(Debug)]
pub(super) enum Found {
    File(Rc<ServedFile>),
    /// A folder that was requested without the slash at the end.
    FolderWithoutSlash,
}

struct Entry {
    path: PathBuf,
    file: Rc<ServedFile>,
    checked_s: u64,
}

/// The files that were requested recently, by request target.
pub(super) struct FileCache {
    root: PathBuf,
    config: CacheConfig,
    entries: FxHashMap<Box<str>, Entry>,
    /// Targets in order of their first request.
    order: VecDeque<Box<str>>,
    bytes: u64,
    versions: Versions,
    stats: CacheStats,
}

impl FileCache {
    /// Creates a cache of the files below `root`, an existing folder.
    pub(super) fn new(root: &Path, config: CacheConfig) -> io::Result<Self> {
        Ok(Self {
            root: root.canonicalize()?,
            config,
            entries: FxHashMap::default(),
            order: VecDeque::new(),
            bytes: 0,
            versions: Versions::default(),
            stats: CacheStats::default(),
        })
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Looks up `target`. The file system is checked if `now_s` differs from the time of the last check.
    pub(super) fn find(&mut self, target: &str, now_s: u64) -> Result<Found, Status> {
        if let Some(entry) = self.entries.get_mut(target) {
            let is_current = entry.checked_s == now_s || entry.file.is_current(&entry.path);
            // A file that had just changed when it was opened is opened again, so that it receives a version.
            let is_nameless = entry.file.version.is_none() && entry.file.stamp.is_settled(now_s);
            if is_current && !is_nameless {
                entry.checked_s = now_s;
                self.stats.hits += 1;
                return Ok(Found::File(Rc::clone(&entry.file)));
            }
            self.stats.changed += u64::from(!is_current);
            self.remove(target);
        }
        self.stats.misses += 1;
        let relative = relative_path(target)?;
        let path = self.resolve(&relative)?;
        let metadata = path.metadata().map_err(|error| status_of(&error))?;
        if !metadata.is_dir() {
            return self.open(target, path, &metadata, now_s).map(Found::File);
        }
        if !target
            .split(['?', '#'])
            .next()
            .is_some_and(|path| path.ends_with('/'))
        {
            return Ok(Found::FolderWithoutSlash);
        }
        match self.resolve(&relative.join("index.html")) {
            Ok(index) => {
                let metadata = index.metadata().map_err(|error| status_of(&error))?;
                self.open(target, index, &metadata, now_s).map(Found::File)
            }
            Err(_) => Err(Status::Forbidden),
        }
    }

    /// Returns the real path, which symbolic links must not lead out of the root.
    fn resolve(&self, relative: &Path) -> Result<PathBuf, Status> {
        let joined = self.root.join(relative);
        let path = joined.canonicalize().map_err(|error| status_of(&error))?;
        if path.starts_with(&self.root) {
            Ok(path)
        } else {
            Err(Status::Forbidden)
        }
    }

    fn open(
        &mut self,
        target: &str,
        path: PathBuf,
        metadata: &Metadata,
        now_s: u64,
    ) -> Result<Rc<ServedFile>, Status> {
        // Opening a pipe or a device could block, or have side effects.
        if !metadata.is_file() {
            return Err(Status::Forbidden);
        }
        let opened = ServedFile::open(&path, self.config.largest_bytes);
        let mut file = opened.map_err(|error| status_of(&error))?;
        if file.stamp.is_settled(now_s) {
            file.version = Some(self.versions.of(&path, file.stamp));
        }
        let file = Rc::new(file);
        if target.len() <= LONGEST_KEY {
            self.keep(target, path, Rc::clone(&file), now_s);
        }
        Ok(file)
    }

    fn keep(&mut self, target: &str, path: PathBuf, file: Rc<ServedFile>, now_s: u64) {
        self.bytes += file.memory_bytes();
        while self.entries.len() >= MOST_FILES || self.bytes > self.config.total_bytes {
            let Some(oldest) = self.order.front().cloned() else {
                break;
            };
            self.remove(&oldest);
        }
        self.order.push_back(target.into());
        let entry = Entry {
            path,
            file,
            checked_s: now_s,
        };
        self.entries.insert(target.into(), entry);
    }

    fn remove(&mut self, target: &str) {
        self.order.retain(|known| **known != *target);
        if let Some(entry) = self.entries.remove(target) {
            self.bytes -= entry.file.memory_bytes();
        }
    }
}

impl ServedFile {
    fn open(path: &Path, largest_in_memory: u64) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let (len, stamp) = (metadata.len(), Stamp::of(&metadata)?);
        let modified = whole_seconds(metadata.modified()?);
        let data = if len <= largest_in_memory {
            // The file may have changed already: then the content would not be that of `stamp`.
            let content = read_chunk(&file, 0, len as usize)?;
            let after = Stamp::of(&file.metadata()?)?;
            if content.len() as u64 != len || !after.has_content_of(&stamp) {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Data::Memory(content)
        } else {
            Data::Disk(file)
        };
        let kind = mime_guess::from_path(path).first_raw();
        let fields = format!(
            "Content-Type: {}\r\nLast-Modified: {}\r\nAccept-Ranges: bytes\r\n",
            kind.unwrap_or("application/octet-stream"),
            httpdate::fmt_http_date(modified),
        );
        Ok(Self {
            len,
            modified,
            fields,
            version: None,
            stamp,
            data,
        })
    }

    /// Returns whether the file at `path` is still the file that was opened, judging by its stamp.
    fn is_current(&self, path: &Path) -> bool {
        let now = path.metadata().and_then(|now| Stamp::of(&now));
        now.is_ok_and(|now| now == self.stamp)
    }

    fn memory_bytes(&self) -> u64 {
        match &self.data {
            Data::Memory(content) => content.len() as u64,
            Data::Disk(_) => 0,
        }
    }

    /// Reads at most `len` bytes at `offset`; returns `None` if the file has changed since it was opened.
    pub(super) fn read(&self, offset: u64, len: usize) -> Option<Bytes> {
        match &self.data {
            Data::Memory(content) => {
                let start = usize::try_from(offset).ok()?;
                let end = start.saturating_add(len).min(content.len());
                (start < end).then(|| content.slice(start..end))
            }
            Data::Disk(file) => {
                let content = read_chunk(file, offset, len).ok()?;
                let now = file.metadata().and_then(|now| Stamp::of(&now));
                let same = now.is_ok_and(|now| now.has_content_of(&self.stamp));
                (same && !content.is_empty()).then_some(content)
            }
        }
    }

    /// Returns whether reading costs only a reference.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.data, Data::Memory(_))
    }
}

/// Reads `len` bytes at `offset`, or fewer at the end of the file.
fn read_chunk(file: &File, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut content = Vec::with_capacity(len);
    while content.len() < len {
        let at = offset + content.len() as u64;
        // The capacity may exceed `len`; bytes read beyond `len` are cut off below.
        match rustix::io::pread(file, spare_capacity(&mut content), at) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    content.truncate(len);
    Ok(Bytes::from(content))
}

/// Truncates a time to whole seconds, the resolution of dates in headers.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// Returns the status of the response for a file that cannot be opened.
pub(super) fn status_of(error: &io::Error) -> Status {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
            Status::NotFound
        }
        ErrorKind::PermissionDenied => Status::Forbidden,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Status::InsufficientStorage
        }
        _ => Status::ServerError,
    }
}

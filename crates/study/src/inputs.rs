//! Digests of input files, which are cached so that files are not read again each time.

use crate::error::StoreError;
use crate::file;
use crate::key::{Digest, Key};
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that was modified less than this long before it was read may change again without a visible difference.
const SETTLED: Duration = Duration::from_secs(2);

/// Digests of files, kept in a store.
#[derive(Debug)]
pub struct Inputs<'a> {
    store: &'a Store,
    known: BTreeMap<PathBuf, Known>,
    /// Files of this study, so that each is examined only once and not for every run.
    seen: BTreeMap<PathBuf, Key>,
    is_new: bool,
}

/// State of a file when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    bytes: u64,
    /// Nanoseconds since 1970.
    modified_ns: u64,
    digest: Key,
}

impl<'a> Inputs<'a> {
    /// Loads the digests that the store knows. A list that cannot be read is created anew.
    pub fn load(store: &'a Store) -> Self {
        let known = file::read_json(&store.inputs()).ok().flatten();
        Self {
            store,
            known: known.unwrap_or_default(),
            seen: BTreeMap::new(),
            is_new: false,
        }
    }

    /// Returns the digest of a file's content.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&mut self, path: &Path) -> Result<Key, StoreError> {
        if let Some(digest) = self.seen.get(path) {
            return Ok(*digest);
        }
        let digest = self.look_up(path)?;
        self.seen.insert(path.to_owned(), digest);
        Ok(digest)
    }

    fn look_up(&mut self, path: &Path) -> Result<Key, StoreError> {
        let read = |error| StoreError::io("read", path)(error);
        let place = fs::canonicalize(path).map_err(read)?;
        let metadata = fs::metadata(&place).map_err(read)?;
        let (bytes, modified_ns) = (metadata.len(), modified_ns(&metadata));
        let known = self.known.get(&place);
        let same = known.filter(|known| known.bytes == bytes && known.modified_ns == modified_ns);
        if let Some(known) = same {
            return Ok(known.digest);
        }
        let digest = digest_of(&place).map_err(read)?;
        let age = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_nanos(modified_ns));
        if age.is_ok_and(|age| age > SETTLED) {
            let known = Known {
                bytes,
                modified_ns,
                digest,
            };
            self.known.insert(place, known);
            self.is_new = true;
        }
        Ok(digest)
    }

    /// Stores the new digests.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn save(self) -> Result<(), StoreError> {
        match self.is_new {
            true => self.store.write_json(&self.store.inputs(), &self.known),
            false => Ok(()),
        }
    }
}

fn modified_ns(metadata: &Metadata) -> u64 {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

fn digest_of(path: &Path) -> std::io::Result<Key> {
    let mut file = File::open(path)?;
    let mut digest = Digest::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digest.key()),
            read => digest.stream(&buffer[..read]),
        }
    }
}

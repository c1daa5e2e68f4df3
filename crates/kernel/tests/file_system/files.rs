//! Files as bytes, with all their revisions.

use super::Random;
use baton_host::FileId;
use baton_kernel::FileStore;
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard};

/// Unit within which content must be from one revision.
pub const BLOCK: u64 = 4096;

/// One revision of a file.
#[derive(Debug)]
struct Version {
    /// The moment at which the revision became current.
    since: u64,
    content: Bytes,
}

/// All revisions of all files, and the moments (event numbers) at which they were current.
#[derive(Debug, Default)]
pub struct History {
    files: Vec<Vec<Version>>,
    pub moment: u64,
}

impl History {
    pub fn new(lengths: &[u64]) -> Self {
        let mut history = Self::default();
        for (file, &len) in lengths.iter().enumerate() {
            let content = (0..len).map(|at| byte(file, 0, at)).collect();
            history.files.push(vec![Version { since: 0, content }]);
        }
        history
    }

    pub fn len(&self, file: FileId) -> u64 {
        self.current(file).content.len() as u64
    }

    fn current(&self, file: FileId) -> &Version {
        self.files[file.0 as usize]
            .last()
            .expect("a file has a revision")
    }

    fn push(&mut self, file: FileId, revision: u32, content: Bytes) {
        let since = self.moment;
        let versions = &mut self.files[file.0 as usize];
        assert_eq!(
            versions.len(),
            revision as usize,
            "revisions are numbered consecutively"
        );
        versions.push(Version { since, content });
    }

    /// Returns whether a file has become shorter at some moment since `from`.
    pub fn was_truncated(&self, file: FileId, from: u64) -> bool {
        let lengths = self.current_since(file, from).map(Bytes::len);
        let lengths: Vec<_> = lengths.collect();
        lengths.windows(2).any(|pair| pair[1] < pair[0])
    }

    /// Returns the revisions that were current at some moment since `from`.
    fn current_since(&self, file: FileId, from: u64) -> impl Iterator<Item = &Bytes> {
        let versions = &self.files[file.0 as usize];
        let first = versions
            .partition_point(|version| version.since <= from)
            .saturating_sub(1);
        versions[first..].iter().map(|version| &version.content)
    }

    /// Asserts that each block of `received`, which begins at `offset` of a file, is from a revision that was current at some moment since
    /// `from`.
    pub fn verify(&self, file: FileId, offset: u64, received: &[u8], from: u64) {
        let mut done = 0;
        while done < received.len() {
            let at = offset + done as u64;
            let run = (BLOCK - at % BLOCK).min((received.len() - done) as u64) as usize;
            let block = &received[done..done + run];
            let known = self
                .current_since(file, from)
                .any(|content| content.get(at as usize..at as usize + run) == Some(block));
            assert!(
                known,
                "{file:?}: {run} bytes at {at} are of no revision that was current since {from}: {}",
                self.explain(file, at as usize, block)
            );
            done += run;
        }
    }

    /// Describes which revision each run of bytes comes from, with runs as long as possible.
    fn explain(&self, file: FileId, at: usize, block: &[u8]) -> String {
        let versions = &self.files[file.0 as usize];
        let (mut text, mut done) = (String::new(), 0);
        while done < block.len() {
            let same = |revision: usize| {
                let content = versions[revision].content.get(at + done..).unwrap_or(&[]);
                let pairs = content.iter().zip(&block[done..]);
                pairs.take_while(|(a, b)| a == b).count()
            };
            let best = (0..versions.len())
                .max_by_key(|&revision| same(revision))
                .expect("a file has a revision");
            let (run, since) = (same(best).max(1), versions[best].since);
            text += &format!("{run} bytes of revision {best} (since {since}), ");
            done += run;
        }
        text
    }
}

/// Returns a byte of content, which depends on file, revision and position.
fn byte(file: usize, revision: u32, at: u64) -> u8 {
    let seed = (file as u64) << 48 ^ u64::from(revision) << 32 ^ at;
    (Random::new(seed).draw() >> 24) as u8
}

/// The files as the kernel sees them: their current revisions.
#[derive(Clone, Debug)]
pub struct ByteFiles(pub Arc<Mutex<History>>);

impl ByteFiles {
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.0
            .lock()
            .expect("no thread panicked while it held the lock")
    }
}

impl FileStore<Bytes> for ByteFiles {
    fn len(&mut self, file: FileId, _asked: u64) -> u64 {
        self.history().len(file)
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> Bytes {
        let content = self.history().current(file).content.clone();
        assert_eq!(
            offset / BLOCK,
            (offset + u64::from(len) - 1) / BLOCK,
            "reads lie within a page"
        );
        content.slice(offset as usize..offset as usize + len as usize)
    }

    fn edit(&mut self, file: FileId, revision: u32, offset: u64, len: u64) {
        let mut history = self.history();
        let mut content = history.current(file).content.to_vec();
        let end = (offset + len) as usize;
        content.resize(content.len().max(end), 0);
        for at in offset..offset + len {
            content[at as usize] = byte(file.0 as usize, revision, at);
        }
        history.push(file, revision, content.into());
    }

    fn truncate(&mut self, file: FileId, revision: u32, len: u64) {
        let mut history = self.history();
        let mut content = history.current(file).content.to_vec();
        content.resize(len as usize, 0);
        history.push(file, revision, content.into());
    }
}

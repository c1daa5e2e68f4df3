//! Logs that are shared by several runs.

use super::{FormatSpec, Log, LogError, ReadOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A cache of logs, so that each is read only once.
#[derive(Debug, Default)]
pub struct Logs(Mutex<Vec<Arc<Kept>>>);

/// A log, which may not be read yet.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    format: Option<FormatSpec>,
    allow_skipped: bool,
    log: Mutex<Option<Arc<Log>>>,
}

impl Logs {
    /// Creates an empty cache.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Returns the log at `path`, reading it with `options` if necessary. A caller that needs a log while another is reading it waits.
    ///
    /// # Errors
    /// As [`Log::read_with`]. Errors are not cached: the next caller tries again.
    pub fn read_with(&self, path: &Path, options: &ReadOptions<'_>) -> Result<Arc<Log>, LogError> {
        let kept = self.kept(path, options);
        let mut log = kept.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = &*log {
            return Ok(Arc::clone(log));
        }
        let read = Arc::new(Log::read_with(path, options)?);
        Ok(Arc::clone(log.insert(read)))
    }

    fn kept(&self, path: &Path, options: &ReadOptions<'_>) -> Arc<Kept> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |kept: &&Arc<Kept>| {
            kept.path == path
                && kept.format == options.format
                && kept.allow_skipped == options.allow_skipped
        };
        if let Some(kept) = all.iter().find(is_wanted) {
            return Arc::clone(kept);
        }
        let kept = Arc::new(Kept {
            path: path.to_owned(),
            format: options.format.clone(),
            allow_skipped: options.allow_skipped,
            log: Mutex::new(None),
        });
        all.push(Arc::clone(&kept));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LINE: &str = "10.0.0.1 - - [01/May/1998:00:00:00 +0000] \"GET / HTTP/1.0\" 200 1000\n";

    #[test]
    fn a_log_is_read_once_per_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, LINE).unwrap();
        let logs = Logs::new();
        let usual = ReadOptions::default();
        let first = logs.read_with(&path, &usual).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &logs.read_with(&path, &usual).unwrap()));
        let other = ReadOptions {
            allow_skipped: true,
            ..ReadOptions::default()
        };
        assert!(matches!(
            logs.read_with(&path, &other),
            Err(LogError::Io { .. })
        ));
        fs::write(&path, LINE).unwrap();
        assert!(logs.read_with(&path, &other).is_ok(), "errors are not kept");
    }
}

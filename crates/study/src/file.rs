//! Files that are written completely or not at all.

use crate::error::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// A file that is being written; it gets its final name only when it is complete. It is safe to lose.
#[derive(Debug)]
pub struct Part(NamedTempFile);

impl Part {
    /// Creates a file in `folder` whose name starts with `owner`.
    pub fn begin(folder: &Path, owner: &str) -> io::Result<Self> {
        let prefix = format!("{owner}.");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        // With the same permissions as any other new file.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(folder).map(Self)
    }

    /// Renames the file to `target`, a path in the same file system.
    ///
    /// The content is synced to the disk before the rename: after a power loss, `target` is complete, its previous version, or missing. The
    /// rename itself is not synced; a run whose file is lost is done again.
    pub fn commit(buffered: BufWriter<Self>, target: &Path) -> io::Result<()> {
        let part = buffered
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        part.0.as_file().sync_data()?;
        part.0
            .persist(target)
            .map(drop)
            .map_err(|error| error.error)
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes `target` through a [`Part`] in `parts`.
pub fn write_whole(
    parts: &Path,
    owner: &str,
    target: &Path,
    write: impl FnOnce(&mut BufWriter<Part>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let written = Part::begin(parts, owner).and_then(|part| {
        let mut out = BufWriter::with_capacity(1 << 16, part);
        write(&mut out)?;
        Part::commit(out, target)
    });
    written.map_err(StoreError::io("write", target))
}

/// Writes `value` as JSON, like [`write_whole`].
pub fn write_json(
    parts: &Path,
    owner: &str,
    target: &Path,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    write_whole(parts, owner, target, |out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Parses a JSON file; returns `None` if there is no such file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(StoreError::io("read", path))?,
    };
    let value = serde_json::from_slice(&text).map_err(io::Error::from);
    value.map(Some).map_err(StoreError::io("read", path))
}

/// Removes a file if it exists; returns whether it did.
pub fn remove(path: &Path) -> Result<bool, StoreError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("remove", path)(error)),
    }
}

/// Returns the sorted names of all entries of a folder; none if the folder does not exist.
pub fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("read", folder))?,
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into());
    let names: io::Result<Vec<String>> = entries.map(name).collect();
    let mut names = names.map_err(StoreError::io("read", folder))?;
    names.sort();
    Ok(names)
}

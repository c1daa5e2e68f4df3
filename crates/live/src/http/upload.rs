//! Files that clients send: written beside their place and put there when they are complete.

use super::files::status_of;
use super::path::relative_path;
use super::status::Status;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 64 * 1024;

/// A file that is coming in. Dropped before it is complete, it leaves nothing.
#[derive(Debug)]
pub(super) struct Upload {
    file: BufWriter<NamedTempFile>,
    target: PathBuf,
    replaces: bool,
    /// More than this is refused, bytes.
    left: u64,
}

impl Upload {
    /// Begins the file that `target`, a request target, names below `folder`.
    ///
    /// # Errors
    /// The status to answer with.
    pub(super) fn begin(folder: &Path, target: &str, limit_bytes: u64) -> Result<Self, Status> {
        let relative = relative_path(target)?;
        if relative.file_name().is_none() || target.ends_with('/') {
            return Err(Status::Conflict);
        }
        let target = folder.join(relative);
        let parent = target.parent().unwrap_or(folder);
        // RFC 9110 has no word for it; WebDAV (RFC 4918 9.7.1) says conflict when the folder is missing.
        let real = parent.canonicalize().map_err(|_| Status::Conflict)?;
        let root = folder.canonicalize().map_err(|error| status_of(&error))?;
        if !real.starts_with(&root) {
            return Err(Status::Forbidden);
        }
        if target.is_dir() {
            return Err(Status::Conflict);
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".baton-").suffix(".part");
        builder.permissions(std::fs::Permissions::from_mode(0o666));
        let file = builder
            .tempfile_in(&real)
            .map_err(|error| status_of(&error))?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            replaces: target.exists(),
            target,
            left: limit_bytes,
        })
    }

    /// Appends `content`.
    ///
    /// # Errors
    /// The status to answer with.
    pub(super) fn write(&mut self, content: &[u8]) -> Result<(), Status> {
        self.left = self
            .left
            .checked_sub(content.len() as u64)
            .ok_or(Status::ContentTooLarge)?;
        self.file
            .write_all(content)
            .map_err(|error| status_of(&error))
    }

    /// Puts the file in its place; the status to answer with.
    pub(super) fn complete(self) -> Status {
        let replaces = self.replaces;
        match self.persist() {
            Ok(()) if replaces => Status::NoContent,
            Ok(()) => Status::Created,
            Err(error) => status_of(&error),
        }
    }

    fn persist(self) -> io::Result<()> {
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.persist(&self.target).map_err(|error| error.error)?;
        Ok(())
    }
}

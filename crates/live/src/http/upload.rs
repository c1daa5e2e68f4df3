//! Files that clients send: written to a temporary file in the same folder, and renamed when they are complete.

use super::files::status_of;
use super::path::relative_path;
use super::status::Status;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Number of bytes that are buffered before a write.
const BUFFER_BYTES: usize = 64 * 1024;

/// A file that is being received. If it is dropped before it is complete, nothing remains of it.
#[derive(Debug)]
pub(super) struct Upload {
    file: BufWriter<NamedTempFile>,
    target: PathBuf,
    replaces: bool,
    /// Number of bytes that are still accepted.
    left: u64,
}

impl Upload {
    /// Starts the file below `folder` that the request target `target` names.
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
        // RFC 9110 defines no status for this; WebDAV (RFC 4918 9.7.1) uses 409 Conflict if the folder is missing.
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

    /// Moves the file to its place; returns the status to answer with.
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

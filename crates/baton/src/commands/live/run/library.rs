//! The preloaded library. The program contains the library, and keeps it in a file for the loader.

use crate::failure::Failure;
use baton_live::bus::program::LIBRARY;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Folder of root's library. Programs that root starts may change their user and start other programs.
const OF_ROOT: &str = "/var/cache/baton";

/// Returns the path of the file that holds `library`, after writing the file if necessary.
///
/// # Errors
/// Fails if the folder belongs to another user, or cannot be written.
pub(super) fn place(library: &[u8]) -> Result<PathBuf, Failure> {
    if library.is_empty() {
        let message =
            "this program was built without the library to preload; build it with `cargo build`";
        return Err(Failure::Failed(message.to_owned()));
    }
    let mut refusal = None;
    for folder in folders() {
        match place_in(&folder, library) {
            Ok(path) => return Ok(path),
            Err(error) => refusal = refusal.or(Some((folder, error))),
        }
    }
    let (folder, error) = refusal.expect("there is a folder to try");
    let folder = folder.display();
    Err(Failure::Failed(format!(
        "cannot write the library to preload to {folder}: {error}"
    )))
}

/// Returns the folders to try: for root, a fixed one; for others, one in the user's cache (XDG Base Directory Specification), and one for
/// users without a cache.
fn folders() -> Vec<PathBuf> {
    if geteuid().is_root() {
        return vec![PathBuf::from(OF_ROOT)];
    }
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = from("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(from("HOME")?.join(".cache")));
    let last = std::env::temp_dir().join(format!("baton-{}", geteuid().as_raw()));
    cache
        .map(|cache| cache.join("baton"))
        .into_iter()
        .chain([last])
        .collect()
}

fn place_in(folder: &Path, library: &[u8]) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    check_owner(&fs::symlink_metadata(folder)?)?;
    let mut hash = DefaultHasher::new();
    library.hash(&mut hash);
    let path = folder.join(format!("{LIBRARY}-{:016x}.so", hash.finish()));
    if fs::read(&path).is_ok_and(|there| there == library) {
        check_owner(&fs::symlink_metadata(&path)?)?;
        return Ok(path);
    }
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(library)?;
    file.as_file()
        .set_permissions(Permissions::from_mode(0o755))?;
    file.persist(&path)?;
    Ok(path)
}

/// Checks that only this user or root can change a file: the preloaded library acts for the user.
fn check_owner(found: &Metadata) -> io::Result<()> {
    let is_own = found.uid() == geteuid().as_raw() || found.uid() == 0;
    match is_own && found.mode() & 0o022 == 0 && !found.is_symlink() {
        true => Ok(()),
        false => Err(io::Error::other(
            "other users may write to it; expected a folder and a file that only this user or root may write to",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_written_once_and_again_when_it_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a/b");
        let first = place_in(&inner, b"first").expect("a file");
        let written = fs::metadata(&first).expect("it is there").ino();
        assert_eq!(place_in(&inner, b"first").expect("a file"), first);
        assert_eq!(fs::metadata(&first).expect("it is there").ino(), written);
        let second = place_in(&inner, b"second").expect("a file");
        assert_ne!(second, first);
        // A file that was truncated or changed is replaced.
        fs::write(&second, b"sec").expect("a file");
        assert_eq!(place_in(&inner, b"second").expect("a file"), second);
        assert_eq!(fs::read(&second).expect("it is there"), b"second");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).expect("it is our own");
        assert!(place_in(folder.path(), b"library").is_err());
    }
}

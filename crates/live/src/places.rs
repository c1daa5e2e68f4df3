//! Default paths of the sockets of adapters, brokers and servers. Each network namespace has its own: an adapter serves the interfaces of
//! one namespace, and its broker refuses sockets of other namespaces.

use crate::error::LiveError;
use crate::namespace::within;
use crate::privileges::ServiceUser;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown, open};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Folder of the network namespace of process 1. The folders of other namespaces have the namespace's number appended to this name.
const FOLDER: &str = "/run/baton";

/// The default paths of one network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    folder: PathBuf,
}

impl Places {
    /// Returns the paths of this thread's network namespace.
    pub fn here() -> Self {
        let folder = match own_number() {
            Some(number) if !is_of_first_process() => format!("{FOLDER}-{number}"),
            _ => FOLDER.to_owned(),
        };
        let folder = folder.into();
        Self { folder }
    }

    /// Returns the paths of the network namespace `name`, or of this thread's.
    ///
    /// # Errors
    /// There is no such namespace, or no permission to enter it.
    pub fn of(name: Option<&str>) -> Result<Self, LiveError> {
        within(name, Self::here)
    }

    /// Path at which applications attach to an adapter.
    pub fn adapter(&self) -> PathBuf {
        self.folder.join("adapter.sock")
    }

    /// Path at which an adapter answers `baton live stat`.
    pub fn control(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// Path at which a broker listens.
    pub fn broker(&self) -> PathBuf {
        self.folder.join("broker.sock")
    }

    /// Path at which a web server answers `baton live stat`.
    pub fn serve(&self) -> PathBuf {
        self.folder.join("serve.sock")
    }

    /// If `path` is in the folder, creates the folder if necessary and makes `owner`, the user who will remove sockets there, its owner.
    ///
    /// # Errors
    /// The process lacks the permission.
    pub fn make_for(&self, path: &Path, owner: Option<&ServiceUser>) -> Result<(), LiveError> {
        if path.parent() != Some(&self.folder) {
            return Ok(());
        }
        self.make(owner).map_err(|error| {
            let (folder, path) = (self.folder.display(), path.display());
            LiveError::BadInput(format!(
                "cannot create the directory {folder} for {path}: {error}; run as root, or give another path"
            ))
        })
    }

    fn make(&self, owner: Option<&ServiceUser>) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o755);
        match rustix::fs::mkdir(&self.folder, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(owner) = owner else {
            return Ok(());
        };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = open(&self.folder, flags, Mode::empty())?;
        let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
        Ok(fchown(folder, Some(uid), Some(gid))?)
    }

    /// Returns a hint for a failed connection to `path` if that is a default path: it says how the path was chosen.
    pub fn hint(&self, path: &Path) -> String {
        if path.parent() != Some(&self.folder) {
            return String::new();
        }
        "; this is the default path in this network namespace: for an adapter in another namespace, run the command there \
         (ip netns exec NAME ...) or give the path"
            .to_owned()
    }
}

/// Returns the number of this thread's network namespace, as `lsns -t net` shows it.
pub(crate) fn own_number() -> Option<u64> {
    let namespace = std::fs::metadata("/proc/thread-self/ns/net");
    namespace.ok().map(|namespace| namespace.ino())
}

/// Returns whether process 1 is in the same network namespace. Only root may follow its link to the namespace (`/proc/1/ns/net`), but every
/// user may inspect the files in `/proc/1/net`, which are identical for processes of the same namespace.
fn is_of_first_process() -> bool {
    let of = |process: &str| {
        let file = std::fs::metadata(format!("/proc/{process}/net/dev")).ok()?;
        Some((file.dev(), file.ino()))
    };
    of("1").is_some_and(|first| of("thread-self") == Some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sockets_of_a_namespace_are_in_its_folder() {
        let places = Places::here();
        for path in [
            places.adapter(),
            places.control(),
            places.broker(),
            places.serve(),
        ] {
            assert!(path.starts_with(&places.folder), "{}", path.display());
            assert!(!places.hint(&path).is_empty());
        }
        assert_eq!(places.hint(Path::new("other.sock")), "");
        assert_eq!(Places::of(None).expect("it is this one"), places);
    }
}

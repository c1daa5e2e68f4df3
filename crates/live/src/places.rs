//! Where the sockets of adapters, brokers and servers are unless a path is given. Each network namespace has its own: an adapter serves the
//! interfaces of one, and its broker refuses sockets of another.

use crate::error::LiveError;
use crate::namespace::within;
use crate::privileges::ServiceUser;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown, open};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder of the network namespace that process 1 is in. Others have one beside it, with the namespace's number behind the name.
const FOLDER: &str = "/run/baton";

/// The default paths of one network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    folder: PathBuf,
}

impl Places {
    /// Those of the network namespace that this thread is in.
    pub fn here() -> Self {
        let folder = match own_number() {
            Some(number) if !is_of_first_process() => format!("{FOLDER}-{number}"),
            _ => FOLDER.to_owned(),
        };
        let folder = folder.into();
        Self { folder }
    }

    /// Those of the network namespace `name`, or of this thread's.
    ///
    /// # Errors
    /// There is no such namespace, or no permission to enter it.
    pub fn of(name: Option<&str>) -> Result<Self, LiveError> {
        within(name, Self::here)
    }

    /// Where an adapter takes applications in.
    pub fn adapter(&self) -> PathBuf {
        self.folder.join("adapter.sock")
    }

    /// Where an adapter answers `baton live stat`.
    pub fn control(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// Where a broker listens.
    pub fn broker(&self) -> PathBuf {
        self.folder.join("broker.sock")
    }

    /// Where a web server answers `baton live stat`.
    pub fn serve(&self) -> PathBuf {
        self.folder.join("serve.sock")
    }

    /// Makes the folder if it is missing and `path` is in it, and gives it to the user who is to remove sockets there.
    ///
    /// # Errors
    /// The process may not.
    pub fn make_for(&self, path: &Path, owner: Option<&ServiceUser>) -> Result<(), LiveError> {
        if path.parent() != Some(&self.folder) {
            return Ok(());
        }
        self.make(owner).map_err(|error| {
            let (folder, path) = (self.folder.display(), path.display());
            LiveError::BadInput(format!(
                "cannot make the folder {folder} for {path}: {error}; run as root, or give another path"
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

    /// What to say where nobody is at `path`: how it was chosen, if it is one of these.
    pub fn hint(&self, path: &Path) -> String {
        if path.parent() != Some(&self.folder) {
            return String::new();
        }
        "; this is the default path in this network namespace: for an adapter of another one run the command there (ip netns exec NAME ...), \
         or give the path"
            .to_owned()
    }
}

/// The number of this thread's network namespace, as `lsns -t net` shows it.
pub(crate) fn own_number() -> Option<u64> {
    let namespace = std::fs::metadata("/proc/thread-self/ns/net");
    namespace.ok().map(|namespace| namespace.ino())
}

/// Whether process 1 is in the same network namespace. Its link to that (`/proc/1/ns/net`) only root may follow, but everybody may look at
/// the files about it, which are the same for processes of the same namespace.
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

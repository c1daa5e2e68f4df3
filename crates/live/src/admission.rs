//! Decides who may connect to the Unix sockets of a process, in addition to the process's own user.

use crate::privileges::ServiceUser;
use nix::unistd::Group;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, fstat, open};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

/// Owner and group may connect, others may not.
const OF_GROUP: u32 = 0o660;

/// A system group whose members may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    name: String,
    id: u32,
}

/// The reason why a group cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// There is no group of that name.
    #[error("there is no such group; expected one that `getent group` lists")]
    Absent,
    /// The lookup failed.
    #[error("cannot look up the group: {0}")]
    Unknown(String),
}

impl FromStr for Admission {
    type Err = AdmissionError;

    fn from_str(name: &str) -> Result<Self, AdmissionError> {
        let found = Group::from_name(name);
        let found = found.map_err(|error| AdmissionError::Unknown(error.desc().to_owned()))?;
        let id = found.ok_or(AdmissionError::Absent)?.gid.as_raw();
        let name = name.to_owned();
        Ok(Self { name, id })
    }
}

impl Admission {
    /// Returns the group's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Makes `user` the owner of the socket at `path`, and lets the members of `group` connect; both are optional.
///
/// # Errors
/// The process lacks the permission, or the file is not a socket.
pub fn give_socket(
    path: &Path,
    user: Option<&ServiceUser>,
    group: Option<&Admission>,
) -> io::Result<()> {
    // The owner of the folder could have replaced the file in the meantime.
    let socket = open(
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if FileType::from_raw_mode(fstat(&socket)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("the file is not a socket"));
    }
    let uid = user.map(|user| Uid::from_raw(user.uid()));
    let gid = group.map(|group| group.id).or(user.map(ServiceUser::gid));
    // Change the group first: otherwise the mode would admit the previous group.
    chownat(
        &socket,
        "",
        uid,
        gid.map(Gid::from_raw),
        AtFlags::EMPTY_PATH,
    )?;
    if group.is_some() {
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        fs::set_permissions(path, Permissions::from_mode(OF_GROUP))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ControlSocket;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_group_of_a_socket_may_connect_and_others_may_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let _socket = ControlSocket::bind(&path).expect("a socket");
        let own = Group::from_gid(nix::unistd::getgid()).expect("an answer");
        let own = own.expect("it has a name").name;
        let admission: Admission = own.parse().expect("it is there");
        give_socket(&path, None, Some(&admission)).expect("it is ours");
        let about = fs::metadata(&path).expect("it is there");
        assert_eq!(about.mode() & 0o777, OF_GROUP);
        assert_eq!(about.gid(), nix::unistd::getgid().as_raw());
    }

    #[test]
    fn a_missing_group_is_refused() {
        let refused = "no-such-group".parse::<Admission>();
        assert_eq!(refused, Err(AdmissionError::Absent));
    }
}

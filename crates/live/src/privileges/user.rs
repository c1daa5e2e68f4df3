//! The user that a daemon becomes when it no longer needs user 0.

use nix::unistd::{Gid, Group, Uid, User, setgroups, setresgid, setresuid};
use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Account to use, if it exists.
const ACCOUNT: &str = "baton";
/// Numbers to use otherwise, which neither systemd nor Debian assigns (below systemd's range for DynamicUser=). No other service uses them,
/// unlike `nobody`: processes of the same user can send each other signals and open each other's files. All daemons choose the same number,
/// so that an adapter may connect to the next broker.
const NUMBERS: RangeInclusive<u32> = 60_706..=61_183;

/// A user without privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUser {
    name: String,
    uid: u32,
    gid: u32,
}

/// Reason why a user cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceUserError {
    /// There is no user of that name.
    #[error("there is no such user; expected one that `getent passwd` lists")]
    Absent,
    /// The user is root.
    #[error("this user is root; expected a user without privileges")]
    Root,
    /// The system cannot look up the user.
    #[error("cannot look up the user: {0}")]
    Unknown(String),
}

impl FromStr for ServiceUser {
    type Err = ServiceUserError;

    fn from_str(name: &str) -> Result<Self, ServiceUserError> {
        let found = User::from_name(name);
        let found = found.map_err(|error| ServiceUserError::Unknown(error.desc().to_owned()))?;
        let user = found.ok_or(ServiceUserError::Absent)?;
        if user.uid.is_root() || user.gid.as_raw() == 0 {
            return Err(ServiceUserError::Root);
        }
        Ok(Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        })
    }
}

/// Returns the name of a user's account, if there is one.
pub fn user_name(uid: u32) -> Option<String> {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map(|user| user.name)
}

/// Returns the number of the user with this name, if there is one.
pub fn user_number(name: &str) -> Option<u32> {
    let user = User::from_name(name).ok().flatten();
    user.map(|user| user.uid.as_raw())
}

impl ServiceUser {
    /// Returns the user that a daemon becomes if none is named: the account `baton`, or a number that no account and no group has. Returns
    /// `None` if the process is not root's and keeps its user, or if it is root in a user namespace that does not have the user.
    pub fn usual() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            return None;
        }
        let account = ACCOUNT.parse::<Self>().ok();
        account
            .or_else(|| NUMBERS.map(Self::numbered).find(Self::is_free))
            .filter(|user| is_mapped("uid_map", user.uid) && is_mapped("gid_map", user.gid))
    }

    fn numbered(number: u32) -> Self {
        Self {
            name: number.to_string(),
            uid: number,
            gid: number,
        }
    }

    fn is_free(&self) -> bool {
        let user = User::from_uid(Uid::from_raw(self.uid));
        let group = Group::from_gid(Gid::from_raw(self.gid));
        matches!((user, group), (Ok(None), Ok(None)))
    }

    /// Returns the user's name, or its number if it has no name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the user's number.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the number of the user's group.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Switches all threads of this process to this user, with no group but its own. This cannot be undone.
    pub(super) fn become_it(&self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        setgroups(&[])?;
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        Ok(())
    }
}

/// Returns whether this user namespace maps that number (user_namespaces(7)).
fn is_mapped(map: &str, number: u32) -> bool {
    let Ok(map) = std::fs::read_to_string(format!("/proc/self/{map}")) else {
        return true;
    };
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        match (fields.next(), fields.nth(1)) {
            (Some(Ok(first)), Some(Ok(count))) => {
                (first..first + count).contains(&u64::from(number))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_users_and_root_are_refused() {
        let of = |name: &str| name.parse::<ServiceUser>();
        assert_eq!(of("no-such-user"), Err(ServiceUserError::Absent));
        assert_eq!(of("root"), Err(ServiceUserError::Root));
        assert_ne!(of("nobody").expect("everybody has it").uid(), 0);
    }

    #[test]
    fn all_daemons_find_the_same_user() {
        assert_eq!(ServiceUser::usual(), ServiceUser::usual());
        let free = ServiceUser::numbered(*NUMBERS.start());
        assert_eq!((free.uid(), free.gid()), (60_706, 60_706));
    }
}

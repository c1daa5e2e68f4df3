//! Checks whether a program can reach the sockets that it needs, as its present user and as another user.

use crate::output::{note, tell};
use rustix::fs::{Access, access};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Mode bits of a socket that its group may connect to.
const GROUP_CONNECTS: u32 = 0o020;

/// Warns if this user may not connect to one of `sockets`, or if only root may: the users that a program changes to do not have root's
/// rights.
pub fn tell_of_refusals(sockets: &[&Path]) {
    let may_not = |path: &&&Path| path.exists() && access(**path, Access::WRITE_OK).is_err();
    if let Some(path) = sockets.iter().find(may_not) {
        tell(&format!(
            "warning: no permission to connect to {}, so that the program's connections stay in the kernel; run the program as the user of \
             the adapter, or start the adapter with --group and a group of this user\n",
            path.display()
        ));
        return;
    }
    let is_root = rustix::process::geteuid().is_root();
    let is_roots = |path: &&&Path| {
        let about = fs::metadata(path);
        about.is_ok_and(|about| about.uid() == 0 && about.mode() & GROUP_CONNECTS == 0)
    };
    if is_root && let Some(path) = sockets.iter().find(is_roots) {
        note(&format!(
            "only root may connect to {}: if the program changes its user, as nginx's workers do, start the adapter with --group and a group \
             of that user",
            path.display()
        ));
    }
}

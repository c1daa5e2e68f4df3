//! Whether a program can get to the sockets that it needs, as the user that it has now and as another.

use crate::output::{note, tell};
use rustix::fs::{Access, access};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bits of a socket that its group may connect to.
const GROUP_CONNECTS: u32 = 0o020;

/// Says so if this user may not connect to one of `sockets`, or only root may, which is this user's right and not that of the users that a
/// program changes to.
pub fn tell_of_refusals(sockets: &[&Path]) {
    let may_not = |path: &&&Path| path.exists() && access(**path, Access::WRITE_OK).is_err();
    if let Some(path) = sockets.iter().find(may_not) {
        tell(&format!(
            "warning: no permission to connect to {}: the program's connections stay in the kernel; run it as the user of the adapter, or \
             start that with --group and a group of this user\n",
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

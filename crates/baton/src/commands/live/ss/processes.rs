//! Finds the processes that own kernel sockets, as far as this user may read /proc.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A process that owns a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Process name.
    pub name: String,
}

/// Returns the processes by the inodes of their sockets. Only root sees processes of other users.
pub fn by_inode() -> BTreeMap<u32, Vec<Process>> {
    let mut found: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in all {
        let name = process.file_name();
        if let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) {
            for inode in sockets_of(&process.path()) {
                let of_inode = found.entry(inode).or_default();
                // The same socket may have several descriptors.
                if of_inode.last().is_none_or(|last| last.pid != pid) {
                    let name = name_of(&process.path());
                    of_inode.push(Process { pid, name });
                }
            }
        }
    }
    found
}

fn sockets_of(process: &Path) -> impl Iterator<Item = u32> {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten();
    descriptors.flatten().filter_map(|descriptor| {
        let link = fs::read_link(descriptor.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        inode.parse().ok()
    })
}

fn name_of(process: &Path) -> String {
    let name = fs::read_to_string(process.join("comm"));
    plain(name.unwrap_or_default().trim_end())
}

/// Removes terminal control characters from a text that a process has chosen.
pub fn plain(text: &str) -> String {
    text.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn this_process_is_found_by_a_socket_of_its_own() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let path = format!("/proc/self/fd/{}", listener.as_raw_fd());
        let inode = fs::metadata(path).expect("it is open").ino();
        let found = by_inode();
        let processes = &found[&u32::try_from(inode).expect("inodes of sockets have 32 bits")];
        assert_eq!(processes.len(), 1);
        assert_eq!(processes[0].pid, std::process::id());
        assert!(!processes[0].name.is_empty());
    }

    #[test]
    fn control_characters_in_names_are_replaced() {
        assert_eq!(plain("a\x1b[2Jb\n"), "a?[2Jb?");
    }
}

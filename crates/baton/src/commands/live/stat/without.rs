//! Finds processes under `baton live run` whose socket calls the library does not see, or not all of them.

use super::super::run::BROKER;
use baton_live::bus::program::{self, Unfit, names_library};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The target of `/proc/PID/fd` links of an io_uring.
const RING: &str = "anon_inode:[io_uring]";
/// AT_SECURE of the auxiliary vector (getauxval(3)). If it is set, the loader ignores LD_PRELOAD.
const AT_SECURE: u64 = 23;

/// A process whose calls the library does not see.
#[derive(Debug, PartialEq, Eq)]
pub struct Without {
    /// Process number.
    pub pid: u32,
    /// Process name.
    pub name: String,
    /// Why its connections stay in the kernel.
    pub why: String,
}

/// Returns the processes whose environment, or whose parent's, names the broker at `path`. Skips those that this user may not read.
pub fn find(path: &Path) -> Vec<Without> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let wanted = [BROKER.as_bytes(), b"=", path.as_os_str().as_bytes()].concat();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let mut meant = BTreeSet::new();
    let mut found = Vec::new();
    for pid in pids {
        let place = PathBuf::from(format!("/proc/{pid}"));
        let environment = fs::read(place.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|&byte| byte == 0);
        // A parent usually has a lower number than its children, so it was seen before.
        if !variables.any(|one| one == wanted)
            && !parent(&place).is_some_and(|it| meant.contains(&it))
        {
            continue;
        }
        meant.insert(pid);
        if let Some(why) = why(&place) {
            let name = fs::read_to_string(place.join("comm")).unwrap_or_default();
            let name = name.trim().replace(char::is_control, "?");
            found.push(Without { pid, name, why });
        }
    }
    found
}

/// Returns the parent of the process in `place`, a folder of /proc.
fn parent(place: &Path) -> Option<u32> {
    let text = fs::read_to_string(place.join("stat")).ok()?;
    // The name in brackets may contain spaces and brackets.
    text.rsplit_once(')')?.1.split(' ').nth(2)?.parse().ok()
}

/// Returns why the library does not see all calls of the process in `place`, or `None` if it does.
fn why(place: &Path) -> Option<String> {
    let unfit = program::check(&place.join("exe")).err();
    if let Some(why @ (Unfit::Static | Unfit::Go)) = unfit {
        return Some(why.to_string());
    }
    // During execve(2) the file is known and the memory map is still empty.
    let maps = fs::read(place.join("maps")).ok()?;
    if maps.is_empty() {
        return None;
    }
    let descriptors = fs::read_dir(place.join("fd")).into_iter().flatten();
    let mut files = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    match names_library(&maps) {
        true if files.any(|file| file.as_os_str() == OsStr::new(RING)) => Some(String::from(
            "it uses io_uring, and the library does not see operations that go through io_uring",
        )),
        true => None,
        false if is_secure(place) => Some(Unfit::Privileged.to_string()),
        false => Some(String::from(
            "the library is not loaded, because the program was started without LD_PRELOAD",
        )),
    }
}

/// Returns whether the process in `place` has other rights than its parent, by setuid or setgid.
fn is_secure(place: &Path) -> bool {
    let vector = fs::read(place.join("auxv")).unwrap_or_default();
    let (pairs, _) = vector.as_chunks::<16>();
    pairs.iter().any(|pair| {
        let [name, value] = [0, 8].map(|at| {
            let word: Option<&[u8; 8]> = pair[at..].first_chunk();
            word.map_or(0, |word| u64::from_ne_bytes(*word))
        });
        name == AT_SECURE && value != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn processes_are_known_by_their_environment() {
        let broker = format!("/run/no-broker-{}", std::process::id());
        let mut other = Command::new("sleep").arg("60").spawn().expect("it runs");
        let mut named = Command::new("sleep");
        named.arg("60").env(BROKER, &broker);
        let mut named = named.spawn().expect("it runs");
        let found = loop {
            let found = find(Path::new(&broker));
            if found.iter().any(|one| one.name == "sleep") {
                break found;
            }
        };
        for child in [&mut other, &mut named] {
            child.kill().expect("it runs");
            child.wait().expect("it is a child");
        }
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pid, named.id());
        assert!(found[0].why.contains("LD_PRELOAD"), "{:?}", found[0]);
    }
}

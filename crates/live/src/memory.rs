//! The amount of memory that this process may use.

use std::fs::read_to_string;
use std::path::Path;

/// Returns the machine's memory, or the lower limit that the process's control groups impose, bytes (cgroups(7), version 2).
pub fn usable_memory() -> u64 {
    let system = rustix::system::sysinfo();
    let machine = system.totalram as u64 * u64::from(system.mem_unit);
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    group.map_or(machine, |group| {
        within_groups(machine, Path::new("/sys/fs/cgroup"), Path::new(group))
    })
}

/// Returns the minimum of `machine` and the limits of `group` and its ancestors, below `root`.
fn within_groups(machine: u64, root: &Path, group: &Path) -> u64 {
    let limit_of = |group: &Path| {
        let limit = read_to_string(root.join(group).join("memory.max")).ok()?;
        limit.trim().parse().ok()
    };
    group
        .ancestors()
        .filter_map(limit_of)
        .fold(machine, u64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_tightest_limit_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = Path::new("outer/inner");
        create_dir_all(root.path().join(inner)).expect("folders");
        let set = |group: &str, limit: &str| {
            write(root.path().join(group).join("memory.max"), limit).expect("a file");
        };
        let usable = || within_groups(1 << 30, root.path(), inner);
        assert_eq!(usable(), 1 << 30);
        set("outer/inner", "max\n");
        assert_eq!(usable(), 1 << 30);
        set("outer", "1000000\n");
        assert_eq!(usable(), 1_000_000);
        set("outer/inner", "2000000\n");
        assert_eq!(usable(), 1_000_000);
    }

    #[test]
    fn the_available_memory_is_known() {
        assert!(usable_memory() > 1 << 20);
    }
}

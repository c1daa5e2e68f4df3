//! Kernel settings that an adapter on the loopback interface needs.
//!
//! The kernel's own packets on that interface carry the route by which they were sent. An adapter's packets do not: the kernel looks up a
//! route, and refuses packets from its own addresses, and to 127.0.0.0/8, unless it is configured to accept them.

use crate::error::LiveError;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};

const FOLDER: &str = "/proc/sys/net/ipv4/conf/lo";
const NEEDED: [&str; 2] = ["accept_local", "route_localnet"];

/// Changed settings of the loopback interface; dropping this restores them. A process that is killed leaves them changed.
#[derive(Debug, Default)]
pub(crate) struct Loopback {
    changed: Vec<File>,
}

impl Loopback {
    /// Configures the kernel of this thread's network namespace to accept an adapter's packets on `lo`.
    ///
    /// # Errors
    /// The settings cannot be changed.
    pub(crate) fn prepare() -> Result<Self, LiveError> {
        let mut changed = Vec::new();
        for name in NEEDED {
            let path = format!("{FOLDER}/{name}");
            let refuse = |error| {
                LiveError::BadInput(format!(
                    "--iface lo: cannot set {path}: {error}; run `sysctl -w net.ipv4.conf.lo.accept_local=1 \
                     net.ipv4.conf.lo.route_localnet=1` in the adapter's network namespace before the start"
                ))
            };
            if std::fs::read_to_string(&path).map_err(refuse)?.trim() == "1" {
                continue;
            }
            // The setting is restored through this descriptor, when the process may no longer open files for writing.
            let file = OpenOptions::new().write(true).open(&path);
            let file = file.map_err(refuse)?;
            set(&file, "1").map_err(refuse)?;
            changed.push(file);
        }
        Ok(Self { changed })
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        for file in &self.changed {
            // A failure can no longer be reported.
            let _ = set(file, "0");
        }
    }
}

fn set(mut file: &File, value: &str) -> io::Result<()> {
    // The kernel ignores bytes that are not written at offset 0.
    file.rewind()?;
    file.write_all(value.as_bytes())
}

//! Processes that work in a store, and detection of those that died.
//!
//! Each process has a file in `workers`, which it keeps locked and touches regularly. If a process of the same system can acquire the lock,
//! the owner is dead, because the kernel released its lock. On another system, where a shared folder may not propagate locks, a process
//! counts as dead if its file is no longer touched. The watcher's own clock measures this; clocks of different machines are never compared.

use crate::error::StoreError;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval of signs of life, and how long to wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Time between two signs of life.
    pub renew_every: Duration,
    /// Time without a sign of life after which a process on another machine counts as dead.
    pub dead_after: Duration,
}

/// Shared folders may cache the attributes of a file for up to a minute.
impl Default for Patience {
    fn default() -> Self {
        Self {
            renew_every: Duration::from_secs(10),
            dead_after: Duration::from_secs(180),
        }
    }
}

/// Self-description of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Name of the process's file.
    pub id: String,
    /// Host name, for people.
    pub host: String,
    /// Identity of the running system (boot); locks are reliable among processes of the same system.
    pub system: String,
    /// Process id on that system.
    pub process: u32,
    /// Start time, seconds since 1970.
    pub began_s: u64,
}

impl Note {
    fn of_this_process() -> Self {
        let read = |path: &str| {
            fs::read_to_string(path)
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let variable = |name: &str| std::env::var(name).ok();
        let host = read("/proc/sys/kernel/hostname")
            .or_else(|| variable("COMPUTERNAME"))
            .or_else(|| variable("HOSTNAME"))
            .unwrap_or_else(|| "unknown".to_owned());
        let system = read("/proc/sys/kernel/random/boot_id").unwrap_or_else(|| host.clone());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let process = std::process::id();
        // Two systems may have the same host name and process id at the same time, but not in the same nanosecond.
        let id = format!("{}-{process}-{:x}", plain(&host), now.as_nanos());
        Self {
            id,
            host,
            system,
            process,
            began_s: now.as_secs(),
        }
    }
}

/// Converts a name to a form that is valid in a file name.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// Whether a process is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The process is alive, as far as can be determined.
    Lives,
    /// The process has ended for good.
    Dead,
}

/// This process, at work in a store. Dropping the value removes the process's file.
#[derive(Debug)]
pub struct Worker {
    note: Note,
    path: PathBuf,
    /// Locked while this is open.
    file: File,
    /// The thread that touches the file; dropping the sender ends it.
    renewal: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Worker {
    /// Starts to work in a store with this folder of workers.
    pub fn begin(folder: &Path, renew_every: Duration) -> Result<Self, StoreError> {
        let note = Note::of_this_process();
        let path = folder.join(&note.id);
        let file = announce(&path, &note).map_err(StoreError::io("write", &path))?;
        let renewed = file.try_clone().map_err(StoreError::io("write", &path))?;
        let (stop, stopped) = mpsc::channel();
        let renew = move || {
            while stopped.recv_timeout(renew_every) == Err(RecvTimeoutError::Timeout) {
                // If renewal fails, another process eventually takes over the run; nothing is lost by that.
                let _ = renewed.set_modified(SystemTime::now());
            }
        };
        Ok(Self {
            note,
            path,
            file,
            renewal: Some((stop, thread::spawn(renew))),
        })
    }

    /// Returns the name of the process's file.
    pub fn id(&self) -> &str {
        &self.note.id
    }

    /// Returns the path of the process's file, which leases link to.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.renewal.take() {
            drop(stop);
            let _ = thread.join();
        }
        // A process that finds the file by a lease can acquire the lock, and concludes that this process is dead.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Creates and locks a worker's file. Where locks are not supported, signs of life have to suffice.
fn announce(path: &Path, note: &Note) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    // Another process may be testing the lock at this moment, so wait for it.
    match file.lock() {
        Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
        _ => {}
    }
    serde_json::to_writer(&mut file, note)?;
    file.flush()?;
    Ok(file)
}

/// Watches other processes.
#[derive(Debug)]
pub struct Watch {
    system: String,
    dead_after: Duration,
    /// Last sign of life of each process of another system, and when this process first saw it.
    signs: Mutex<FxHashMap<String, (SystemTime, Instant)>>,
}

impl Watch {
    /// Creates a watch that has not seen any process.
    pub fn new(dead_after: Duration) -> Self {
        Self {
            system: Note::of_this_process().system,
            dead_after,
            signs: Mutex::default(),
        }
    }

    /// Returns the owner of a file and whether it is alive; `None` if there is no such file.
    pub fn life_of(&self, path: &Path) -> Result<Option<(Note, Life)>, StoreError> {
        let seen = OpenOptions::new().read(true).write(true).open(path);
        let file = match seen {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(StoreError::io("read", path))?,
        };
        let text = io::read_to_string(&file).map_err(StoreError::io("read", path))?;
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let modified = modified.map_err(StoreError::io("read", path))?;
        // The owner may have created the file and not written it yet, or died in between.
        let note = serde_json::from_str(&text).unwrap_or_else(|_| nobody(path));
        let is_here = note.system == self.system;
        let life = match file.try_lock() {
            Ok(()) if is_here => Life::Dead,
            Err(TryLockError::WouldBlock) if is_here => Life::Lives,
            _ => self.life_by_signs(&note.id, modified),
        };
        Ok(Some((note, life)))
    }

    fn life_by_signs(&self, id: &str, modified: SystemTime) -> Life {
        let now = Instant::now();
        let mut signs = self.signs.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, since) = signs.entry(id.to_owned()).or_insert((modified, now));
        if *last != modified {
            (*last, *since) = (modified, now);
        }
        match now.duration_since(*since) > self.dead_after {
            true => Life::Dead,
            false => Life::Lives,
        }
    }
}

/// Returns a placeholder for an owner whose note is not written yet.
fn nobody(path: &Path) -> Note {
    let id = path.file_name().unwrap_or_default().to_string_lossy();
    Note {
        id: id.into_owned(),
        host: String::new(),
        system: String::new(),
        process: 0,
        began_s: 0,
    }
}

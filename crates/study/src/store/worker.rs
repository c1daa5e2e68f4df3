//! Processes that work in a store, and whether they still do.
//!
//! Each has a file in `workers`, which it keeps locked and touches every now and then. Seen from the same system a lock that can be had is
//! that of a dead process: the kernel gives it up. Seen from another system, where a shared folder may not pass locks on, one is dead whose
//! file is not touched any more, by the watcher's own clock: clocks of several machines are never compared.

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

/// How often signs of life come, and how long they are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From one sign of life to the next.
    pub renew_every: Duration,
    /// A process of another machine is dead that gives none for so long.
    pub dead_after: Duration,
}

/// Shared folders keep what they know of a file for up to a minute.
impl Default for Patience {
    fn default() -> Self {
        Self {
            renew_every: Duration::from_secs(10),
            dead_after: Duration::from_secs(180),
        }
    }
}

/// What a process says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The name of its file.
    pub id: String,
    /// Its machine, for people.
    pub host: String,
    /// The system that it runs in: as long as that is up, its locks can be believed.
    pub system: String,
    /// Its number there.
    pub process: u32,
    /// When it began, seconds since 1970.
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
        // Two systems may have the same name and number of a process at the same time, but not the same nanosecond.
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

/// A name that can be part of a file's.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// Whether a process works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does, as far as can be told.
    Lives,
    /// It does not, and never will again.
    Dead,
}

/// This process, at work in a store. Its file goes with it.
#[derive(Debug)]
pub struct Worker {
    note: Note,
    path: PathBuf,
    /// Locked for as long as this is open.
    file: File,
    /// Dropped to end the thread.
    renewal: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Worker {
    /// Begins to work in a store with this folder of workers.
    pub fn begin(folder: &Path, renew_every: Duration) -> Result<Self, StoreError> {
        let note = Note::of_this_process();
        let path = folder.join(&note.id);
        let file = announce(&path, &note).map_err(StoreError::io("write", &path))?;
        let renewed = file.try_clone().map_err(StoreError::io("write", &path))?;
        let (stop, stopped) = mpsc::channel();
        let renew = move || {
            while stopped.recv_timeout(renew_every) == Err(RecvTimeoutError::Timeout) {
                // What cannot be renewed is taken over in the end: nothing is lost by that.
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

    /// The name of its file.
    pub fn id(&self) -> &str {
        &self.note.id
    }

    /// Its file, which leases are links to.
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
        // Whoever finds it can have its lock, and knows that it is dead.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Writes a worker's file and locks it. Where there are no locks, signs of life have to do.
fn announce(path: &Path, note: &Note) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    // Somebody may be looking whether it can be locked.
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
    /// The last sign of life of each process of another system, and when it was first seen here.
    signs: Mutex<FxHashMap<String, (SystemTime, Instant)>>,
}

impl Watch {
    /// Has seen none yet.
    pub fn new(dead_after: Duration) -> Self {
        Self {
            system: Note::of_this_process().system,
            dead_after,
            signs: Mutex::default(),
        }
    }

    /// Whose file this is, and whether it lives; none if there is no such file.
    pub fn life_of(&self, path: &Path) -> Result<Option<(Note, Life)>, StoreError> {
        let seen = OpenOptions::new().read(true).write(true).open(path);
        let file = match seen {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(StoreError::io("read", path))?,
        };
        let text = io::read_to_string(&file).map_err(StoreError::io("read", path))?;
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let modified = modified.map_err(StoreError::io("read", path))?;
        // Between making a file and writing it somebody may die, or be about to write.
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

/// Who has not said yet who it is.
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

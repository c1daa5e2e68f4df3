//! Files that the host lends to the adapter: the host's record of them.

use super::files::{self, MOST_FILES, read_cached};
use baton_bus::descriptor::FilePlace;
use rustix::fs::{FileType, Mode, OFlags, Stat, open};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Once the adapter has the maximum number of files, only one in this many uses of files that it does not have replaces one of them:
/// passing a file costs more than reading a small one.
const USES_PER_CHANGE: u32 = 8;

/// What distinguishes a file and its revisions. Some file systems, such as overlayfs, put other content behind an inode number when a file
/// is changed for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    inode: u64,
    device: u64,
    size: i64,
    modified: (i64, i128),
    changed: (i64, i128),
}

impl Key {
    fn of(about: &Stat) -> Self {
        Self {
            inode: about.st_ino,
            device: about.st_dev,
            size: about.st_size,
            modified: (about.st_mtime, about.st_mtime_nsec.into()),
            changed: (about.st_ctime, about.st_ctime_nsec.into()),
        }
    }
}

/// A file that the adapter has.
#[derive(Debug)]
struct Slot {
    key: Key,
    number: u32,
    /// Number of SENDs of the file that the adapter has not answered; until then, the file keeps its slot.
    uses: u32,
    used_at: u64,
}

/// The files that the adapter has. The slot of a file is its number modulo [`MOST_FILES`]; no two files have the same number.
#[derive(Debug)]
pub(super) struct Lent {
    stream: UnixStream,
    slots: Vec<Slot>,
    /// Number of uses so far.
    uses: u64,
    /// Number of uses of files that the adapter did not have.
    absent: u32,
}

impl Lent {
    pub fn new(stream: UnixStream) -> Self {
        let slots = Vec::new();
        Self {
            stream,
            slots,
            uses: 0,
            absent: 0,
        }
    }

    /// Begins a use of an open file, and passes it to the adapter if the adapter does not have it. Returns the address of its first byte,
    /// or `None` if the adapter cannot read it, or has too many others.
    pub fn lend(&mut self, file: BorrowedFd<'_>, about: &Stat) -> Option<u64> {
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return None;
        }
        let key = Key::of(about);
        let slot = match self.slots.iter().position(|slot| slot.key == key) {
            Some(slot) => slot,
            None => self.pass(file, key)?,
        };
        let slot = &mut self.slots[slot];
        self.uses += 1;
        slot.uses += 1;
        slot.used_at = self.uses;
        let (file, offset) = (slot.number, 0);
        Some(FilePlace { file, offset }.address())
    }

    /// Ends a use.
    pub fn release(&mut self, number: u32) {
        let slot = self.slots.get_mut((number % MOST_FILES) as usize);
        let slot = slot.filter(|slot| slot.number == number && slot.uses > 0);
        debug_assert!(slot.is_some(), "file {number} is in use");
        if let Some(slot) = slot {
            slot.uses -= 1;
        }
    }

    /// Passes a file to the adapter. Returns its slot.
    fn pass(&mut self, file: BorrowedFd<'_>, key: Key) -> Option<usize> {
        let is_full = self.slots.len() == MOST_FILES as usize;
        self.absent = self.absent.wrapping_add(1);
        if is_full && !self.absent.is_multiple_of(USES_PER_CHANGE) {
            return None;
        }
        let unused = self.slots.iter().enumerate().filter(|(_, it)| it.uses == 0);
        let (at, number) = match is_full {
            false => (self.slots.len(), self.slots.len() as u32),
            true => {
                let (at, oldest) = unused.min_by_key(|(_, slot)| slot.used_at)?;
                (at, (oldest.number + MOST_FILES) % FilePlace::FILES)
            }
        };
        let own = reopened(file)?;
        files::pass(&self.stream, number, &own).ok()?;
        let slot = Slot {
            key,
            number,
            uses: 0,
            used_at: 0,
        };
        match is_full {
            true => self.slots[at] = slot,
            false => self.slots.push(slot),
        }
        Some(at)
    }
}

/// Opens a file again for reading, if its file system says what is in memory: the program's own descriptor may carry a lock (flock(2)), and
/// other rights.
fn reopened(file: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut first = [MaybeUninit::uninit()];
    match read_cached(file, 0, &mut first) {
        Ok(_) | Err(Errno::AGAIN) => {}
        Err(_) => return None,
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    open(path, flags, Mode::empty()).ok()
}

//! The table of the descriptors that this library handles ("ours"). Most calls are on other descriptors, for which the check costs one
//! load.

use crate::description::{Description, Descriptors};
use crate::epoll::EpollSet;
use crate::reason::Reason;
use crate::signals::{self, Hold};
use crate::sys;
use crate::unconnected::Unconnected;
use libc::c_int;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

/// Descriptors from this number on stay with the kernel. Linux by default does not let a process have that many.
pub const MOST: usize = 1 << 20;

/// Which descriptors are ours. Pages that are never written take no memory.
static OURS: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
/// Entries that are still to be dropped.
static RETIRED: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
static ARE_RETIRED: AtomicBool = AtomicBool::new(false);
static ENTRIES: RwLock<Vec<Option<Entry>>> = RwLock::new(Vec::new());
/// The process that the table belongs to. The child of vfork(2) shares its memory, but not its descriptors.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// The object behind a descriptor of ours.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A socket.
    Socket(Arc<Description>),
    /// An epoll instance that contains sockets of ours.
    Epoll(Arc<EpollSet>),
    /// A kernel socket that may become connected, and would then be ours.
    Unconnected(Arc<Unconnected>),
    /// A kernel listener whose connections may move.
    Listening,
    /// A kernel listener or unconnected socket whose connections stay in the kernel.
    KernelOnly(Reason),
}

impl Entry {
    /// Records that the descriptor refers to this entry.
    fn enter(&self, fd: c_int) {
        if let Self::Socket(socket) = self {
            let mut list = socket.descriptors.list();
            if !list.contains(&fd) {
                list.push(fd);
            }
        }
    }

    /// Records that the descriptor no longer refers to this entry.
    fn leave(&self, fd: c_int) {
        if let Self::Socket(socket) = self {
            socket.descriptors.list().retain(|other| *other != fd);
        }
    }
}

/// The object that a call works on. Signal handlers wait while it exists.
#[derive(Debug)]
pub struct Found<T> {
    it: Arc<T>,
    _hold: Hold,
}

impl<T> Found<T> {
    fn new(it: Arc<T>) -> Self {
        let hold = signals::hold();
        Self { it, _hold: hold }
    }
}

impl<T> Deref for Found<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.it
    }
}

fn is_ours(fd: c_int) -> bool {
    usize::try_from(fd).is_ok_and(|fd| fd < MOST && OURS[fd].load(Ordering::Acquire))
}

/// Returns the entry of a descriptor, if the descriptor is ours.
#[inline]
pub fn find(fd: c_int) -> Option<Entry> {
    if is_ours(fd) { find_ours(fd) } else { None }
}

#[cold]
fn find_ours(fd: c_int) -> Option<Entry> {
    let _hold = signals::hold();
    let entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner);
    entries.get(fd as usize)?.clone()
}

/// Returns the socket behind a descriptor, if it is ours.
#[inline]
pub fn socket(fd: c_int) -> Option<Found<Description>> {
    match find(fd) {
        Some(Entry::Socket(description)) => Some(Found::new(description)),
        _ => None,
    }
}

/// Returns the epoll instance behind a descriptor, if it contains sockets of ours.
#[inline]
pub fn epoll(fd: c_int) -> Option<Found<EpollSet>> {
    match find(fd) {
        Some(Entry::Epoll(set)) => Some(Found::new(set)),
        _ => None,
    }
}

/// Returns all epoll instances that contain sockets of ours.
pub fn epolls() -> Vec<Arc<EpollSet>> {
    let _hold = signals::hold();
    let entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner);
    let set = |entry: &Option<Entry>| match entry {
        Some(Entry::Epoll(set)) => Some(Arc::clone(set)),
        _ => None,
    };
    entries.iter().filter_map(set).collect()
}

/// Returns the set of an epoll instance, after entering `new` if there was none. Returns `None` if the descriptor does not fit into the
/// table.
pub fn epoll_or(fd: c_int, new: Arc<EpollSet>) -> Option<Found<EpollSet>> {
    let _hold = signals::hold();
    let index = usize::try_from(fd).ok().filter(|&index| index < MOST)?;
    let mut entries = write();
    if let Some(Some(Entry::Epoll(set))) = entries.get(index) {
        // Another thread was faster.
        return Some(Found::new(Arc::clone(set)));
    }
    let before = put(&mut entries, index, Entry::Epoll(Arc::clone(&new)));
    drop(entries);
    drop(before);
    Some(Found::new(new))
}

fn write() -> RwLockWriteGuard<'static, Vec<Option<Entry>>> {
    ENTRIES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a descriptor ours; returns `false` if it does not fit into the table.
pub fn set(fd: c_int, entry: Entry) -> bool {
    let index = fd as usize;
    if index >= MOST {
        return false;
    }
    let _hold = signals::hold();
    let mut entries = write();
    let before = put(&mut entries, index, entry);
    // Dropping the old entry may take other locks.
    drop(entries);
    drop(before);
    true
}

fn put(entries: &mut Vec<Option<Entry>>, index: usize, entry: Entry) -> Option<Entry> {
    if index >= entries.len() {
        entries.resize(index + 1, None);
    }
    let fd = index as c_int;
    entries[index].iter().for_each(|before| before.leave(fd));
    entry.enter(fd);
    let before = entries[index].replace(entry);
    OURS[index].store(true, Ordering::Release);
    before
}

/// Removes the entry of a descriptor that goes back to the kernel or is about to be closed. The object is dropped with its last descriptor.
pub fn remove(fd: c_int) -> Option<Entry> {
    if !is_ours(fd) || PROCESS.load(Ordering::Relaxed) != sys::process() {
        return None;
    }
    let _hold = signals::hold();
    let mut entries = write();
    OURS[fd as usize].store(false, Ordering::Release);
    let entry = entries.get_mut(fd as usize)?.take()?;
    entry.leave(fd);
    Some(entry)
}

/// Removes an entry that cannot be dropped now, because this thread is inside a call of its adapter.
pub fn retire(fd: c_int) {
    let _hold = signals::hold();
    if let Some(entry) = remove(fd) {
        retired().push(entry);
        ARE_RETIRED.store(true, Ordering::Relaxed);
    }
}

/// Drops the entries that [`retire`] has kept.
#[inline]
pub fn drop_retired() {
    if ARE_RETIRED.load(Ordering::Relaxed) {
        let _hold = signals::hold();
        ARE_RETIRED.store(false, Ordering::Relaxed);
        let entries = std::mem::take(&mut *retired());
        drop(entries);
    }
}

fn retired() -> MutexGuard<'static, Vec<Entry>> {
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `new` a duplicate of `old`, whatever `new` was before.
pub fn copy(old: c_int, new: c_int) {
    if old == new || PROCESS.load(Ordering::Relaxed) != sys::process() {
        return;
    }
    let _hold = signals::hold();
    remove(new);
    let index = new as usize;
    if !is_ours(old) || index >= MOST {
        return;
    }
    let mut entries = write();
    let Some(entry) = entries.get(old as usize).cloned().flatten() else {
        return;
    };
    let is_stale = matches!(&entry, Entry::Socket(it) if it.stream().is_some()) && {
        // The socket behind `old` may have been replaced since the program duplicated it.
        let inodes = sys::inode(old).zip(sys::inode(new));
        inodes.is_some_and(|(old, new)| old != new)
    };
    if is_stale {
        sys::replace(new, old);
    }
    let before = put(&mut entries, index, entry);
    drop(entries);
    drop(before);
}

/// Replaces the socket `old` by `new` behind a connection's descriptors, once `copy` has copied the options.
pub fn follow(descriptors: &Descriptors, old: c_int, new: c_int, copy: impl FnOnce()) {
    let _hold = signals::hold();
    // Meanwhile nobody else changes the program's descriptors, as far as this library sees.
    let entries = write();
    let list = descriptors.list();
    copy();
    let old = sys::inode(old);
    for &fd in &*list {
        let is_ours = match entries.get(fd as usize) {
            Some(Some(Entry::Socket(socket))) => ptr::eq(&*socket.descriptors, descriptors),
            Some(Some(_)) => false,
            // The entry is about to be added.
            Some(None) | None => true,
        };
        // The program may have closed the descriptor by a call that this library does not see.
        if is_ours && old.is_some() && sys::inode(fd) == old {
            sys::replace(fd, new);
        }
    }
}

/// Returns all descriptors of ours from `first` to `last`.
pub fn range(first: c_int, last: c_int) -> Vec<c_int> {
    let _hold = signals::hold();
    let entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner);
    let all = entries.iter().enumerate();
    let ours = all.filter(|(_, entry)| entry.is_some());
    ours.map(|(fd, _)| fd as c_int)
        .filter(|fd| (first..=last).contains(fd))
        .collect()
}

/// Claims the table for this process.
pub fn claim() {
    PROCESS.store(sys::process(), Ordering::Relaxed);
}

/// Returns whether the table belongs to this process.
pub fn is_claimed() -> bool {
    PROCESS.load(Ordering::Relaxed) == sys::process()
}

/// Locks the table while the process is copied.
pub struct Held(RwLockWriteGuard<'static, Vec<Option<Entry>>>);

/// Locks the table.
pub fn hold() -> Held {
    Held(write())
}

impl Held {
    /// In the child, replaces every entry by what `change` returns for it. Never drops the parent's entries: they refer to threads and a
    /// link that the child does not have.
    pub fn replace(mut self, change: impl Fn(&Entry) -> Option<Entry>) {
        for (fd, place) in self.0.iter_mut().enumerate() {
            if let Some(entry) = place.take() {
                *place = change(&entry);
                place.iter().for_each(|entry| entry.enter(fd as c_int));
                OURS[fd].store(place.is_some(), Ordering::Release);
                std::mem::forget(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_abi::address::Family;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    /// Serializes these tests: there is only one table. Their fixed numbers are never open descriptors.
    static ALONE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        claim();
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry() -> (Arc<Description>, Entry) {
        let description = Arc::new(Description::kernel(Family::V4));
        (Arc::clone(&description), Entry::Socket(description))
    }

    #[test]
    fn copies_share_a_description_and_the_last_one_drops_it() {
        let _alone = alone();
        let (description, entry) = entry();
        assert!(set(70_000, entry) && socket(70_001).is_none());
        copy(70_000, 70_001);
        let found = socket(70_001).expect("a copy");
        assert!(Arc::ptr_eq(&found, &description));
        drop(found);
        drop(remove(70_000));
        assert!(socket(70_000).is_none() && socket(70_001).is_some());
        drop(remove(70_001));
        assert_eq!(Arc::strong_count(&description), 1);
    }

    #[test]
    fn a_description_knows_its_descriptors() {
        let _alone = alone();
        let (description, entry) = entry();
        let list = || description.descriptors.list().to_vec();
        set(70_050, entry);
        copy(70_050, 70_051);
        copy(70_050, 70_052);
        assert_eq!(list(), [70_050, 70_051, 70_052]);
        drop(remove(70_050));
        // Another socket takes over the number of a copy.
        set(70_051, self::entry().1);
        assert_eq!(list(), [70_052]);
        retire(70_052);
        assert!(list().is_empty());
        drop_retired();
        drop(remove(70_051));
    }

    fn socket_fd() -> OwnedFd {
        UnixStream::pair().expect("room").0.into()
    }

    /// Descriptors of the connection follow it; other descriptors do not, even those that have reused the number of one.
    #[test]
    fn descriptors_follow_a_connection_to_its_new_socket() {
        let _alone = alone();
        let (old, new, others) = (socket_fd(), socket_fd(), socket_fd());
        let (description, entry) = entry();
        let copies = [(), ()].map(|()| old.try_clone().expect("room"));
        rustix::io::fcntl_setfd(&copies[1], rustix::io::FdFlags::empty()).expect("it is open");
        for copy in &copies {
            set(copy.as_raw_fd(), entry.clone());
        }
        // This number was reused by a call that the table has not seen.
        set(others.as_raw_fd(), entry.clone());
        let of_others = sys::inode(others.as_raw_fd());
        let mut copied = 0;
        let (from, to) = (old.as_raw_fd(), new.as_raw_fd());
        follow(&description.descriptors, from, to, || copied += 1);
        assert_eq!(copied, 1);
        for (copy, flags) in copies.iter().zip([1, 0]) {
            assert_eq!(sys::inode(copy.as_raw_fd()), sys::inode(to));
            let found = rustix::io::fcntl_getfd(copy).expect("it is open");
            assert_eq!(found.bits(), flags);
        }
        assert_eq!(sys::inode(others.as_raw_fd()), of_others);
        // A descriptor that is not in the table yet follows, too, but one that another socket has taken does not.
        let early = old.try_clone().expect("room");
        let descriptors = Descriptors::new(early.as_raw_fd());
        set(copies[0].as_raw_fd(), self::entry().1);
        descriptors.list().push(copies[0].as_raw_fd());
        sys::replace(copies[0].as_raw_fd(), from);
        follow(&descriptors, from, to, || {});
        assert_eq!(sys::inode(early.as_raw_fd()), sys::inode(to));
        assert_eq!(sys::inode(copies[0].as_raw_fd()), sys::inode(from));
        for fd in [&copies[0], &copies[1], &others] {
            drop(remove(fd.as_raw_fd()));
        }
    }

    #[test]
    fn retired_entries_are_dropped_later() {
        let _alone = alone();
        let (description, entry) = entry();
        set(70_040, entry);
        retire(70_040);
        assert!(find(70_040).is_none());
        assert_eq!(Arc::strong_count(&description), 2);
        drop_retired();
        assert_eq!(Arc::strong_count(&description), 1);
    }

    #[test]
    fn a_copy_of_an_unknown_descriptor_is_unknown() {
        let _alone = alone();
        set(70_010, entry().1);
        copy(70_011, 70_010);
        assert!(find(70_010).is_none());
    }

    #[test]
    fn invalid_descriptors_are_unknown() {
        for fd in [-1, c_int::MAX, MOST as c_int] {
            assert!(find(fd).is_none() && remove(fd).is_none());
        }
        assert!(!set(MOST as c_int, entry().1));
    }

    #[test]
    fn another_process_does_not_change_the_table() {
        let _alone = alone();
        set(70_020, entry().1);
        PROCESS.store(1, Ordering::Relaxed);
        assert!(remove(70_020).is_none());
        copy(70_021, 70_020);
        claim();
        assert!(remove(70_020).is_some());
    }

    #[test]
    fn ranges_include_both_ends() {
        let _alone = alone();
        for fd in [70_030, 70_032, 70_034] {
            set(fd, entry().1);
        }
        assert_eq!(range(70_030, 70_033), [70_030, 70_032]);
        assert_eq!(range(70_032, 70_034), [70_032, 70_034]);
        for fd in range(70_030, 70_034) {
            remove(fd);
        }
    }
}

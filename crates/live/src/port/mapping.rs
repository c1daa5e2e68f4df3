//! Memory that the kernel and this process share, rings of packet sockets and AF_XDP sockets and the frames of these, or two processes.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

const PROTECTION: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Shared memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its memory, which is the same in all threads of a process.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a ring that was set up at socket `fd`: that at `offset`, `len` bytes.
    ///
    /// # Errors
    /// There is no such ring, or no memory.
    pub(crate) fn of_socket(fd: BorrowedFd<'_>, len: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap(ptr::null_mut(), len, PROTECTION, flags, fd, offset) }?;
        Self::at_base(base, len)
    }

    /// Maps the first `len` bytes of a file in memory, which must be sealed: one that became shorter would take the memory away.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn of_file(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap(ptr::null_mut(), len, PROTECTION, MapFlags::SHARED, fd, 0) }?;
        Self::at_base(base, len)
    }

    /// Maps memory that nobody has yet, `len` zeros.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, PROTECTION, MapFlags::PRIVATE) }?;
        Self::at_base(base, len)
    }

    fn at_base(base: *mut c_void, len: usize) -> io::Result<Self> {
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// Its size, bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A place for `size` bytes.
    pub(crate) fn at(&self, offset: usize, size: usize) -> *mut u8 {
        assert!(
            offset.checked_add(size).is_some_and(|end| end <= self.len),
            "the place lies within the mapping"
        );
        // SAFETY: the place lies within the mapping.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let memory = self.base.as_ptr().cast::<c_void>();
        // SAFETY: it was mapped with this length and nothing refers to it any more.
        let unmapped = unsafe { munmap(memory, self.len) };
        debug_assert!(unmapped.is_ok(), "it was mapped");
    }
}

//! Memory that this process shares with the kernel (rings of packet and AF_XDP sockets, and AF_XDP frames) or with another process.
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

// SAFETY: the mapping owns its memory, which is at the same address in all threads of a process.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring of `len` bytes at `offset` that was set up at socket `fd`.
    ///
    /// # Errors
    /// The ring does not exist, or there is not enough memory.
    pub(crate) fn of_socket(fd: BorrowedFd<'_>, len: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses does not touch memory in use.
        let base = unsafe { mmap(ptr::null_mut(), len, PROTECTION, flags, fd, offset) }?;
        Self::at_base(base, len)
    }

    /// Maps the first `len` bytes of an in-memory file, which must be sealed against shrinking: that would invalidate the mapping.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn of_file(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses does not touch memory in use.
        let base = unsafe { mmap(ptr::null_mut(), len, PROTECTION, MapFlags::SHARED, fd, 0) }?;
        Self::at_base(base, len)
    }

    /// Maps `len` zero bytes of new memory.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses does not touch memory in use.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, PROTECTION, MapFlags::PRIVATE) }?;
        Self::at_base(base, len)
    }

    fn at_base(base: *mut c_void, len: usize) -> io::Result<Self> {
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// Returns the size of the mapping, bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of `size` bytes at `offset`; panics if they are not within the mapping.
    pub(crate) fn at(&self, offset: usize, size: usize) -> *mut u8 {
        assert!(
            offset.checked_add(size).is_some_and(|end| end <= self.len),
            "the place lies within the mapping"
        );
        // SAFETY: the address is within the mapping.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let memory = self.base.as_ptr().cast::<c_void>();
        // SAFETY: the memory was mapped with this length, and nothing refers to it any more.
        let unmapped = unsafe { munmap(memory, self.len) };
        debug_assert!(unmapped.is_ok(), "it was mapped");
    }
}

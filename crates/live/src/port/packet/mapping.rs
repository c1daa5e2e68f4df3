//! Memory that the kernel and this process share through a packet socket.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

/// The memory of a ring.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its memory, which is the same in all threads of a process.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring that was set up at socket `fd`, `len` bytes.
    ///
    /// # Errors
    /// There is no such ring, or no memory.
    pub(super) fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// A place for `size` bytes.
    pub(super) fn at(&self, offset: usize, size: usize) -> *mut u8 {
        assert!(
            offset.checked_add(size).is_some_and(|end| end <= self.len),
            "the place lies within the ring"
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
        debug_assert!(unmapped.is_ok(), "the ring was mapped");
    }
}

//! The shared memory in this process's address space. The only place of the link with unsafe code.
#![allow(unsafe_code)]

use super::memory::{CONTROL_AT, Layout, SLOTS_AT};
use baton_bus::shared::{Control, SharedMemory, Side, Slot};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

/// The memory. Another process may write to any part of it at any moment: there are references to its atomic words only, and data
/// is copied through pointers, never seen in place.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, which is the same in all threads of a process; what is shared of it is atomic, or copied.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file of that layout, which must be sealed: one that became shorter would take the memory away.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn new(fd: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let len = layout.bytes();
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, layout })
    }

    /// Copies `data` to `offset` of the pool.
    ///
    /// Panics when it does not lie within the pool.
    pub fn write(&self, offset: usize, data: &[u8]) {
        let place = self.pool_place(offset, data.len());
        // SAFETY: the place is that long. It does not overlap with memory of this process. What another process does to it
        // meanwhile can change only which bytes stand there, and any bytes are valid.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), place, data.len()) };
    }

    /// Copies what stands at `offset` of the pool to all of `data`, and gives it.
    ///
    /// Panics when it does not lie within the pool.
    pub fn read<'a>(&self, offset: usize, data: &'a mut [MaybeUninit<u8>]) -> &'a [u8] {
        let place = self.pool_place(offset, data.len());
        // SAFETY: as above, the other way round.
        unsafe { ptr::copy_nonoverlapping(place, data.as_mut_ptr().cast(), data.len()) };
        // SAFETY: all of it has just been written.
        unsafe { &*(ptr::from_mut(data) as *const [u8]) }
    }

    fn pool_place(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset
                .checked_add(len)
                .is_some_and(|end| end <= self.layout.pool_bytes),
            "the place lies within the pool"
        );
        // SAFETY: the pool, and so the place, lies within the mapping.
        unsafe { self.base.as_ptr().add(self.layout.pool_at + offset) }
    }
}

impl SharedMemory for Mapping {
    fn control(&self) -> &Control {
        // SAFETY: it lies within the mapping, aligned as a page is, and lives as long. It consists of atomic integers, which both
        // processes may change, and for which all bits are valid.
        unsafe { &*self.base.as_ptr().add(CONTROL_AT).cast() }
    }

    fn slots(&self, from: Side) -> &[Slot] {
        let depth = self.layout.ring_depth;
        let first = SLOTS_AT
            + match from {
                Side::Host => 0,
                Side::Adapter => depth * size_of::<Slot>(),
            };
        // SAFETY: as above: both rings end before the pool begins.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(first).cast(), depth) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let memory = self.base.as_ptr().cast::<c_void>();
        // SAFETY: it was mapped with this length and nothing refers to it any more.
        let unmapped = unsafe { munmap(memory, self.layout.bytes()) };
        debug_assert!(unmapped.is_ok(), "the memory was mapped");
    }
}

//! The shared memory in this process's address space.
#![allow(unsafe_code)]

use super::copy::{from_shared, to_shared};
use super::memory::{CONTROL_AT, Layout, SLOTS_AT};
use baton_bus::Descriptor;
use baton_bus::shared::{Control, SharedMemory, Side};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

/// The mapped memory. Another process may write to any part of it at any moment, so references exist only to its atomic words; everything
/// else is copied by atomic operations, and never accessed in place.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns the mapping, which is valid in all threads of a process; shared parts are atomic or copied.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file with this layout. The file must be sealed: if it shrank, accesses would fail.
    ///
    /// # Errors
    /// There is not enough address space.
    pub fn new(fd: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let len = layout.bytes();
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory in use.
        let base = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, layout })
    }

    /// Copies `data` to `offset` in the pool.
    ///
    /// Panics if the range is not within the pool.
    pub fn write(&self, offset: usize, data: &[u8]) {
        let place = self.pool_place(offset, data.len());
        // SAFETY: the range has this length and lies within the mapping, which contains nothing else. This process accesses it in no other
        // way: the pool begins after the control words and the slots, and only this function and `read` copy to and from it.
        unsafe { to_shared(data.as_ptr(), place, data.len()) };
    }

    /// Fills `data` from `offset` in the pool, and returns it.
    ///
    /// Panics if the range is not within the pool.
    pub fn read<'a>(&self, offset: usize, data: &'a mut [MaybeUninit<u8>]) -> &'a [u8] {
        let place = self.pool_place(offset, data.len());
        // SAFETY: `data` has this length, and is borrowed mutably. The range has this length, and is only accessed as `write` says.
        unsafe { from_shared(place, data.as_mut_ptr().cast(), data.len()) };
        // SAFETY: all of `data` has just been written, and any bytes that another process puts there are valid.
        unsafe { &*(ptr::from_mut(data) as *const [u8]) }
    }

    /// Returns the address of `len` slots, from slot `at` on, of the ring that `from` fills.
    ///
    /// Panics if the slots are not within the ring.
    fn slots(&self, from: Side, at: usize, len: usize) -> *mut Descriptor {
        let depth = self.layout.ring_depth;
        let in_ring = at.checked_add(len).is_some_and(|end| end <= depth);
        assert!(in_ring, "the slots lie within the ring");
        let ring = match from {
            Side::Host => 0,
            Side::Adapter => depth,
        };
        let offset = SLOTS_AT + (ring + at) * size_of::<Descriptor>();
        // SAFETY: both rings, and so the slots, lie within the mapping; the address is aligned for descriptors.
        unsafe { self.base.as_ptr().add(offset).cast() }
    }

    fn pool_place(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset
                .checked_add(len)
                .is_some_and(|end| end <= self.layout.pool_bytes),
            "the place lies within the pool"
        );
        // SAFETY: the pool, and so the range, lies within the mapping.
        unsafe { self.base.as_ptr().add(self.layout.pool_at + offset) }
    }
}

impl SharedMemory for Mapping {
    fn control(&self) -> &Control {
        // SAFETY: the control words lie within the mapping, which is aligned to pages, and live as long. They are atomic integers, which
        // both processes may change, and for which all bits are valid.
        unsafe { &*self.base.as_ptr().add(CONTROL_AT).cast() }
    }

    fn ring_depth(&self) -> usize {
        self.layout.ring_depth
    }

    fn write_slots(&self, from: Side, at: usize, descriptors: &[Descriptor]) {
        let place = self.slots(from, at, descriptors.len());
        let len = size_of_val(descriptors);
        // SAFETY: there is space for this many slots. A descriptor is four integers, so all its bytes are initialised. Only this function
        // and `read_slots` access slots in this process.
        unsafe { to_shared(descriptors.as_ptr().cast(), place.cast(), len) };
    }

    fn read_slots(&self, from: Side, at: usize, len: usize, descriptors: &mut Vec<Descriptor>) {
        let place = self.slots(from, at, len);
        descriptors.reserve(len);
        let room = descriptors.spare_capacity_mut();
        let bytes = size_of_val(&room[..len]);
        // SAFETY: space for `len` descriptors has just been reserved, and there are `len` slots, which are only accessed as `write_slots`
        // says.
        unsafe { from_shared(place.cast(), room.as_mut_ptr().cast(), bytes) };
        // SAFETY: `len` descriptors have just been appended; a descriptor is four integers, for which all bits are valid.
        unsafe { descriptors.set_len(descriptors.len() + len) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let memory = self.base.as_ptr().cast::<c_void>();
        // SAFETY: the memory was mapped with this length, and nothing refers to it any more.
        let unmapped = unsafe { munmap(memory, self.layout.bytes()) };
        debug_assert!(unmapped.is_ok(), "the memory was mapped");
    }
}

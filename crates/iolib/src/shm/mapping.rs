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

/// The memory. Another process may write to any part of it at any moment: there are references to its atomic words only, and all else
/// is copied by atomic operations, never seen in place.
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
        // SAFETY: the place is that long, and lies within the mapping, of which nothing else is a part. This process accesses it in no
        // other way: the pool begins behind the control words and the slots, and is copied from and to only here and in `read`.
        unsafe { to_shared(data.as_ptr(), place, data.len()) };
    }

    /// Copies what stands at `offset` of the pool to all of `data`, and gives it.
    ///
    /// Panics when it does not lie within the pool.
    pub fn read<'a>(&self, offset: usize, data: &'a mut [MaybeUninit<u8>]) -> &'a [u8] {
        let place = self.pool_place(offset, data.len());
        // SAFETY: `data` is as long, and is borrowed for writing. The place is that long; it is accessed as `write` says.
        unsafe { from_shared(place, data.as_mut_ptr().cast(), data.len()) };
        // SAFETY: all of it has just been written, and any bytes that another process puts there are valid ones.
        unsafe { &*(ptr::from_mut(data) as *const [u8]) }
    }

    /// The `len` slots from `at` on, of the ring that `from` fills.
    ///
    /// Panics when they do not lie within the ring.
    fn slots(&self, from: Side, at: usize, len: usize) -> *mut Descriptor {
        let depth = self.layout.ring_depth;
        let in_ring = at.checked_add(len).is_some_and(|end| end <= depth);
        assert!(in_ring, "the slots lie within the ring");
        let ring = match from {
            Side::Host => 0,
            Side::Adapter => depth,
        };
        let offset = SLOTS_AT + (ring + at) * size_of::<Descriptor>();
        // SAFETY: both rings, and so the place, lie within the mapping; it is aligned as they are.
        unsafe { self.base.as_ptr().add(offset).cast() }
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

    fn ring_depth(&self) -> usize {
        self.layout.ring_depth
    }

    fn write_slots(&self, from: Side, at: usize, descriptors: &[Descriptor]) {
        let place = self.slots(from, at, descriptors.len());
        let len = size_of_val(descriptors);
        // SAFETY: there is room for so many slots at the place. A descriptor is four integers, so all its bytes are initialised. This
        // process accesses slots in no other way than here and in `read_slots`.
        unsafe { to_shared(descriptors.as_ptr().cast(), place.cast(), len) };
    }

    fn read_slots(&self, from: Side, at: usize, len: usize, descriptors: &mut Vec<Descriptor>) {
        let place = self.slots(from, at, len);
        descriptors.reserve(len);
        let room = descriptors.spare_capacity_mut();
        let bytes = size_of_val(&room[..len]);
        // SAFETY: there is room for `len` descriptors, which have just been reserved, and there are so many slots at the place, which
        // are accessed as `write_slots` says.
        unsafe { from_shared(place.cast(), room.as_mut_ptr().cast(), bytes) };
        // SAFETY: so many have just been written behind the others; a descriptor is four integers, of which all bits are valid.
        unsafe { descriptors.set_len(descriptors.len() + len) };
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

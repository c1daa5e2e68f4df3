//! Rings between this process and the kernel (AF_XDP in the kernel's documentation): one side adds entries, the other removes them, and
//! each side publishes its progress in an index that only it writes.
#![allow(unsafe_code)]

use crate::port::mapping::Mapping;
use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring of entries that are plain data for both sides.
#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    /// Offsets of the indices, the flags and the entries in the mapping.
    producer: usize,
    consumer: usize,
    flags: Option<usize>,
    entries: usize,
    /// Number of entries, a power of two.
    size: u32,
    _entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn new(
        fd: BorrowedFd<'_>,
        size: u32,
        offsets: XdpRingOffset,
        page_offset: u64,
    ) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "the kernel asks for it");
        let entries = offsets.desc as usize;
        let len = entries + size as usize * size_of::<T>();
        Ok(Self {
            mapping: Mapping::of_socket(fd, len, page_offset)?,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags.map(|flags| flags as usize),
            entries,
            size,
            _entry: PhantomData,
        })
    }

    /// Returns a word that the kernel accesses too.
    fn word(&self, offset: usize) -> &AtomicU32 {
        let place = self.mapping.at(offset, size_of::<AtomicU32>()).cast();
        // SAFETY: the kernel has reported this offset as that of a word, so it is aligned; `at` has checked that it is in the mapping,
        // which lives as long as the ring. Both sides access the word atomically only.
        unsafe { AtomicU32::from_ptr(place) }
    }

    /// Returns the address of an entry, by the index of either side.
    fn entry(&self, index: u32) -> *mut T {
        let slot = (index & (self.size - 1)) as usize;
        let offset = self.entries + slot * size_of::<T>();
        self.mapping.at(offset, size_of::<T>()).cast()
    }
}

/// The end of a ring that adds entries.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Number of entries added so far, including unpublished ones.
    put: u32,
    /// Number of entries that the kernel had removed at the last check.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    /// Maps the ring of socket `fd` at `page_offset`.
    ///
    /// # Errors
    /// The ring was not set up, or there is not enough memory.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        size: u32,
        offsets: XdpRingOffset,
        page_offset: u64,
    ) -> io::Result<Self> {
        let ring = Ring::new(fd, size, offsets, page_offset)?;
        Ok(Self {
            ring,
            put: 0,
            taken: 0,
        })
    }

    /// Returns the number of entries for which the ring has space, at most `enough`.
    pub(super) fn room(&mut self, enough: u32) -> u32 {
        let room = |taken: u32| self.ring.size - self.put.wrapping_sub(taken);
        if room(self.taken) < enough {
            self.taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        }
        (self.ring.size - self.put.wrapping_sub(self.taken)).min(enough)
    }

    /// Adds an entry, for which there must be space. The kernel sees the entry after [`Producer::publish`].
    pub(super) fn put(&mut self, entry: T) {
        debug_assert!(self.pending() < self.ring.size, "there is room");
        // SAFETY: the entry is in the mapping and aligned, as rings start at a cache line. The kernel reads the entry only after `publish`,
        // and has finished reading the previous entry in this slot, as `room` has observed with `Acquire`.
        unsafe { self.ring.entry(self.put).write(entry) };
        self.put = self.put.wrapping_add(1);
    }

    /// Makes all added entries visible to the kernel.
    pub(super) fn publish(&mut self) {
        let producer = self.ring.word(self.ring.producer);
        producer.store(self.put, Ordering::Release);
    }

    /// Returns the number of entries that the kernel has not removed yet.
    pub(super) fn pending(&self) -> u32 {
        let taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        self.put.wrapping_sub(taken)
    }

    /// Returns whether the kernel processes the ring only when it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        // Without flags, the ring does not report this.
        self.ring.flags.is_none_or(|flags| {
            let flags = self.ring.word(flags).load(Ordering::Relaxed);
            flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
        })
    }
}

/// The end of a ring that removes entries.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Number of entries removed so far, including unreleased ones.
    taken: u32,
    /// Number of entries that the kernel had added at the last check.
    put: u32,
}

impl<T: Copy> Consumer<T> {
    /// Maps the ring of socket `fd` at `page_offset`.
    ///
    /// # Errors
    /// The ring was not set up, or there is not enough memory.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        size: u32,
        offsets: XdpRingOffset,
        page_offset: u64,
    ) -> io::Result<Self> {
        let ring = Ring::new(fd, size, offsets, page_offset)?;
        Ok(Self {
            ring,
            taken: 0,
            put: 0,
        })
    }

    /// Removes an entry; returns `None` if the ring is empty. The kernel may reuse its slot after [`Consumer::release`].
    pub(super) fn take(&mut self) -> Option<T> {
        if self.taken == self.put {
            self.put = self.ring.word(self.ring.producer).load(Ordering::Acquire);
            if self.taken == self.put {
                return None;
            }
        }
        // SAFETY: the entry is in the mapping and aligned, as rings start at a cache line. The kernel wrote the entry before it set the
        // index that was read with `Acquire`, and does not change it until `release`.
        let entry = unsafe { self.ring.entry(self.taken).read() };
        self.taken = self.taken.wrapping_add(1);
        Some(entry)
    }

    /// Returns the slots of all removed entries to the kernel.
    pub(super) fn release(&mut self) {
        let consumer = self.ring.word(self.ring.consumer);
        consumer.store(self.taken, Ordering::Release);
    }
}

//! Rings between this process and the kernel (AF_XDP in the kernel's documentation): one side puts in, the other takes out, and each
//! tells the other how far it has come by an index that only it writes.
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
    /// Where in the mapping the indices, the flags and the entries are.
    producer: usize,
    consumer: usize,
    flags: Option<usize>,
    entries: usize,
    /// Entries, a power of two.
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

    /// A word that the kernel looks at too.
    fn word(&self, offset: usize) -> &AtomicU32 {
        let place = self.mapping.at(offset, size_of::<AtomicU32>()).cast();
        // SAFETY: the kernel has told this place for a word, so it is aligned to one; `at` has checked that it is in the mapping, which
        // lives as long as the ring. Both sides access it atomically only.
        unsafe { AtomicU32::from_ptr(place) }
    }

    /// The place of an entry, by the index of either side.
    fn entry(&self, index: u32) -> *mut T {
        let slot = (index & (self.size - 1)) as usize;
        let offset = self.entries + slot * size_of::<T>();
        self.mapping.at(offset, size_of::<T>()).cast()
    }
}

/// The end of a ring that puts entries in.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Entries put in so far, with those that the kernel was not told of.
    put: u32,
    /// Entries that the kernel had taken out when it was last looked.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    /// Maps the ring of socket `fd` that is at `page_offset`.
    ///
    /// # Errors
    /// It was not set up, or there is no memory.
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

    /// Entries that find room now, or `enough` of them.
    pub(super) fn room(&mut self, enough: u32) -> u32 {
        let room = |taken: u32| self.ring.size - self.put.wrapping_sub(taken);
        if room(self.taken) < enough {
            self.taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        }
        (self.ring.size - self.put.wrapping_sub(self.taken)).min(enough)
    }

    /// Puts one in, for which there must be room. The kernel sees it after [`Producer::publish`].
    pub(super) fn put(&mut self, entry: T) {
        debug_assert!(self.pending() < self.ring.size, "there is room");
        // SAFETY: the place is in the mapping and aligned, as rings start at a cache line. The kernel reads it only once it has been
        // told of it, and is done with what was there before, as `room` has seen with `Acquire`.
        unsafe { self.ring.entry(self.put).write(entry) };
        self.put = self.put.wrapping_add(1);
    }

    /// Tells the kernel of what was put in.
    pub(super) fn publish(&mut self) {
        let producer = self.ring.word(self.ring.producer);
        producer.store(self.put, Ordering::Release);
    }

    /// Entries that the kernel has not taken out yet.
    pub(super) fn pending(&self) -> u32 {
        let taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        self.put.wrapping_sub(taken)
    }

    /// Whether the kernel looks at the ring only when it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        // Without flags it was not asked to say.
        self.ring.flags.is_none_or(|flags| {
            let flags = self.ring.word(flags).load(Ordering::Relaxed);
            flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
        })
    }
}

/// The end of a ring that takes entries out.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Entries taken out so far, with those that the kernel was not told of.
    taken: u32,
    /// Entries that the kernel had put in when it was last looked.
    put: u32,
}

impl<T: Copy> Consumer<T> {
    /// As [`Producer::new`].
    ///
    /// # Errors
    /// It was not set up, or there is no memory.
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

    /// Takes one out; none when there is none now. The kernel may use its place again after [`Consumer::release`].
    pub(super) fn take(&mut self) -> Option<T> {
        if self.taken == self.put {
            self.put = self.ring.word(self.ring.producer).load(Ordering::Acquire);
            if self.taken == self.put {
                return None;
            }
        }
        // SAFETY: the place is in the mapping and aligned, as rings start at a cache line. The kernel wrote the entry before it set the
        // index that was seen with `Acquire`, and leaves it alone until it is released.
        let entry = unsafe { self.ring.entry(self.taken).read() };
        self.taken = self.taken.wrapping_add(1);
        Some(entry)
    }

    /// Tells the kernel of what was taken out.
    pub(super) fn release(&mut self) {
        let consumer = self.ring.word(self.ring.consumer);
        consumer.store(self.taken, Ordering::Release);
    }
}

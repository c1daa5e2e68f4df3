//! The memory of a socket's frames (UMEM): chunks of equal size, each of which belongs to this process or to the kernel.
#![allow(unsafe_code)]

use crate::port::mapping::Mapping;
use rustix::net::sockopt::set_xdp_umem_reg;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::io;
use std::os::fd::BorrowedFd;

/// Memory that is divided into chunks.
#[derive(Debug)]
pub(super) struct Frames {
    mapping: Mapping,
    chunk_bytes: usize,
}

impl Frames {
    /// Allocates `chunks` chunks of `chunk_bytes` each, a power of two.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(chunks: u32, chunk_bytes: usize) -> io::Result<Self> {
        Ok(Self {
            mapping: Mapping::anonymous(chunks as usize * chunk_bytes)?,
            chunk_bytes,
        })
    }

    /// Shares the memory with the kernel, which keeps it until socket `fd` is closed.
    ///
    /// # Errors
    /// This amount of memory may not be pinned (ENOBUFS).
    pub(super) fn register(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let len = self.mapping.len();
        let request = XdpUmemReg {
            addr: self.mapping.at(0, len).expose_provenance() as u64,
            len: len as u64,
            chunk_size: self.chunk_bytes as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        Ok(set_xdp_umem_reg(fd, request)?)
    }

    /// Returns the address at which each chunk starts.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.mapping.len() as u64).step_by(self.chunk_bytes)
    }

    /// Returns the start of the chunk that contains `address`.
    pub(super) fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk_bytes as u64 - 1)
    }

    /// Returns a received frame.
    ///
    /// # Safety
    /// The kernel must have returned the chunk through the receive ring, and must not own it again until the borrow of the frame ends.
    pub(super) unsafe fn received(&mut self, address: u64, len: u32) -> &mut [u8] {
        let place = self.mapping.at(address as usize, len as usize);
        // SAFETY: `at` has checked that the range is within the mapping, which is initialised; the caller guarantees that the kernel does
        // not use it, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(place, len as usize) }
    }

    /// Copies a frame that is to be sent to the start of a chunk.
    ///
    /// # Safety
    /// The kernel must not own the chunk.
    ///
    /// # Panics
    /// Panics if the frame is longer than a chunk.
    pub(super) unsafe fn write(&mut self, address: u64, frame: &[u8]) {
        assert!(frame.len() <= self.chunk_bytes, "the frame fits");
        let place = self.mapping.at(address as usize, frame.len());
        // SAFETY: `at` has checked that the range is within the mapping; the caller guarantees that the kernel does not use it, and `self`
        // is borrowed exclusively.
        unsafe { place.copy_from_nonoverlapping(frame.as_ptr(), frame.len()) };
    }
}

//! The memory of a socket's frames (UMEM): equal chunks, each of which belongs to this process or to the kernel.
#![allow(unsafe_code)]

use crate::port::mapping::Mapping;
use rustix::net::sockopt::set_xdp_umem_reg;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::io;
use std::os::fd::BorrowedFd;

/// Chunks of frames.
#[derive(Debug)]
pub(super) struct Frames {
    mapping: Mapping,
    chunk_bytes: usize,
}

impl Frames {
    /// `chunks` of `chunk_bytes` each, a power of two.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn new(chunks: u32, chunk_bytes: usize) -> io::Result<Self> {
        Ok(Self {
            mapping: Mapping::anonymous(chunks as usize * chunk_bytes)?,
            chunk_bytes,
        })
    }

    /// Shares the memory with the kernel, which keeps it until socket `fd` is closed.
    ///
    /// # Errors
    /// So much memory may not be pinned (ENOBUFS).
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

    /// Where each chunk starts.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.mapping.len() as u64).step_by(self.chunk_bytes)
    }

    /// Where the chunk starts that a frame at `address` is in.
    pub(super) fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk_bytes as u64 - 1)
    }

    /// A received frame.
    ///
    /// # Safety
    /// The kernel has given the chunk back by the receive ring, and has not been given it since, nor is it while the frame is borrowed.
    pub(super) unsafe fn received(&mut self, address: u64, len: u32) -> &mut [u8] {
        let place = self.mapping.at(address as usize, len as usize);
        // SAFETY: `at` has checked that the place is in the mapping, which is initialised from the start; the caller vouches that
        // the kernel does not use it, and `self` is borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(place, len as usize) }
    }

    /// Copies a frame to the start of a chunk, from where it is to be sent.
    ///
    /// # Safety
    /// The chunk is none that the kernel has.
    ///
    /// # Panics
    /// The frame is longer than a chunk.
    pub(super) unsafe fn write(&mut self, address: u64, frame: &[u8]) {
        assert!(frame.len() <= self.chunk_bytes, "the frame fits");
        let place = self.mapping.at(address as usize, frame.len());
        // SAFETY: `at` has checked that the place is in the mapping; the caller vouches that nobody else uses it, and `self` is borrowed
        // by nobody else.
        unsafe { place.copy_from_nonoverlapping(frame.as_ptr(), frame.len()) };
    }
}

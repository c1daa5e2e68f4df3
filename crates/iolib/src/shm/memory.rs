//! The shared file and its layout.

use crate::handshake::{Geometry, VERSION};
use baton_bus::Descriptor;
use baton_bus::shared::Control;
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::{pread, pwrite};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Offset of [`Control`].
pub(super) const CONTROL_AT: usize = 128;
/// Offset of the first ring's slots.
pub(super) const SLOTS_AT: usize = 1024;
const PAGE_BYTES: usize = 4096;
const MAGIC: &[u8; 8] = b"BATONSHM";
/// Seals that stop both sides from changing the size or the seals.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

const _: () = assert!(CONTROL_AT + size_of::<Control>() <= SLOTS_AT);

/// Offsets and sizes that depend on the geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub ring_depth: usize,
    /// Offset of the pool of buffers.
    pub pool_at: usize,
    pub pool_bytes: usize,
}

impl Layout {
    pub fn new(geometry: &Geometry) -> Self {
        let ring_depth = geometry.ring_depth as usize;
        let slots = 2 * ring_depth * Descriptor::BYTES as usize;
        Self {
            ring_depth,
            pool_at: (SLOTS_AT + slots).next_multiple_of(PAGE_BYTES),
            pool_bytes: geometry.pool_bytes() as usize,
        }
    }

    /// Returns the total size, bytes.
    pub fn bytes(&self) -> usize {
        self.pool_at + self.pool_bytes
    }
}

/// Returns the first bytes, which identify the memory to anyone who inspects it.
fn header(geometry: &Geometry) -> [u8; 64] {
    let mut header = [0; 64];
    header[..8].copy_from_slice(MAGIC);
    let words = [
        u32::from(VERSION),
        geometry.ring_depth,
        geometry.buffers,
        geometry.buffer_bytes,
    ];
    for (place, word) in header[8..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// Creates the file, with zeros after the header.
///
/// # Errors
/// The system lacks memory or descriptors for the file.
pub(super) fn create(geometry: &Geometry) -> io::Result<OwnedFd> {
    let fd = memfd_create(
        "baton-link",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    ftruncate(&fd, Layout::new(geometry).bytes() as u64)?;
    pwrite(&fd, &header(geometry), 0)?;
    fcntl_add_seals(&fd, SEALS)?;
    Ok(fd)
}

/// Returns whether a file from the other side is as announced, so that accesses cannot fail later.
///
/// # Errors
/// The file cannot be examined, which does not happen with a memory file.
pub(super) fn is_sound(fd: impl AsFd, geometry: &Geometry) -> io::Result<bool> {
    let fd = fd.as_fd();
    let mut found = [0; 64];
    let read = pread(fd, &mut found[..], 0)?;
    Ok(fcntl_get_seals(fd)?.contains(SEALS)
        && fstat(fd)?.st_size as u64 == Layout::new(geometry).bytes() as u64
        && found[..read] == header(geometry))
}

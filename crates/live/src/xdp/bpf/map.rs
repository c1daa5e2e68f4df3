//! Maps, and their entries.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{Command, NAME_BYTES, address_of, bpf, kernel_name, owned};

/// Kinds of maps, by their numbers in `enum bpf_map_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::xdp) enum MapKind {
    Hash = 1,
    PerCpuArray = 6,
    /// A map of AF_XDP sockets (XSKMAP).
    Sockets = 17,
}

/// A map in the kernel. It is freed when nothing refers to it any more.
#[derive(Debug)]
pub(in crate::xdp) struct Map {
    fd: OwnedFd,
    key_bytes: usize,
    /// Number of bytes that a call reads or writes as the value of an entry.
    value_bytes: usize,
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Map {
    /// Creates a map for at most `entries` entries.
    ///
    /// # Errors
    /// The process lacks the permission, there is not enough memory, or the kernel does not support this kind.
    pub(in crate::xdp) fn new(
        name: &str,
        kind: MapKind,
        key_bytes: usize,
        value_bytes: usize,
        entries: u32,
    ) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            key_bytes: u32,
            value_bytes: u32,
            entries: u32,
            flags: u32,
            inner_map: u32,
            numa_node: u32,
            name: [u8; NAME_BYTES],
        }
        let mut attributes = Attributes {
            kind: kind as u32,
            key_bytes: key_bytes as u32,
            value_bytes: value_bytes as u32,
            entries,
            flags: 0,
            inner_map: 0,
            numa_node: 0,
            name: kernel_name(name),
        };
        // One value per processor, each a multiple of eight bytes.
        let copies = match kind {
            MapKind::PerCpuArray => possible_processors()?,
            _ => 1,
        };
        // SAFETY: these are the attributes of the command, which contain no pointers.
        let fd = unsafe { bpf(Command::MapCreate, &mut attributes) }?;
        Ok(Self {
            fd: owned(fd),
            key_bytes,
            value_bytes: value_bytes * copies,
        })
    }

    /// Executes a command on an entry, with the key and a buffer for the value.
    fn on_entry(&self, command: Command, key: &[u8], value: *mut u8) -> io::Result<()> {
        #[repr(C)]
        struct Attributes {
            map: u32,
            padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        assert_eq!(key.len(), self.key_bytes, "the key is one of this map");
        let mut attributes = Attributes {
            map: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: address_of(key),
            value: value.expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of the three commands on entries. The key has the map's key size. The value is either not
        // accessed (delete), or has the map's value size for all processors, which the callers assert; only lookups write to it, and they
        // pass a mutable buffer.
        unsafe { bpf(command, &mut attributes) }.map(|_| ())
    }

    /// Sets an entry.
    ///
    /// # Errors
    /// E2BIG if the map has no space for another entry.
    pub(in crate::xdp) fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes, "a value of this map");
        self.on_entry(Command::MapUpdate, key, value.as_ptr().cast_mut())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// ENOENT if the entry does not exist.
    pub(in crate::xdp) fn delete(&self, key: &[u8]) -> io::Result<()> {
        self.on_entry(Command::MapDelete, key, std::ptr::null_mut())
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// ENOENT if the entry does not exist.
    pub(in crate::xdp) fn read(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes, "a value of this map");
        self.on_entry(Command::MapLookup, key, value.as_mut_ptr())
    }

    /// Returns the sums over all processors of the values in entry `index`, in an array of `N` numbers each.
    ///
    /// # Errors
    /// The entry does not exist.
    pub(in crate::xdp) fn sums<const N: usize>(&self, index: u32) -> io::Result<[u64; N]> {
        let mut bytes = vec![0; self.value_bytes];
        self.read(&index.to_ne_bytes(), &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let mut sums = [0_u64; N];
        for of_processor in words.chunks_exact(N) {
            for (sum, word) in sums.iter_mut().zip(of_processor) {
                *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
            }
        }
        Ok(sums)
    }
}

/// Returns the number of processors for which the kernel keeps values, from ranges such as `0-3,8`.
fn possible_processors() -> io::Result<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    let counts = list.trim().split(',').map(count);
    counts
        .sum::<Option<usize>>()
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

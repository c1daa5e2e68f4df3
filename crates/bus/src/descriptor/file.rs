//! Addresses in files that a host has lent to the adapter.

/// Maximum number of bytes of a file in one SEND.
pub const MOST_FILE_BYTES: u32 = 1 << 20;

/// Marks an address that lies in a file.
const IN_FILE: u64 = 1 << 63;
/// Number of bits of an offset: enough for 16 TiB.
const OFFSET_BITS: u32 = 44;

/// A place in a file that the host has lent to the adapter, which reads the file by itself. Such places have addresses like those of the
/// host's buffers: bit 63 is set, bits 44 to 62 are the number that the host gave the file, the others the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Number of the file, less than [`FilePlace::FILES`].
    pub file: u32,
    /// Offset in the file, bytes; less than [`FilePlace::BYTES`].
    pub offset: u64,
}

impl FilePlace {
    /// Limit of the numbers of files.
    pub const FILES: u32 = 1 << (63 - OFFSET_BITS);
    /// Limit of the offsets that an address can have.
    pub const BYTES: u64 = 1 << OFFSET_BITS;

    /// Returns the address of the place, whose numbers must be below their limits.
    #[must_use]
    pub const fn address(self) -> u64 {
        debug_assert!(self.file < Self::FILES && self.offset < Self::BYTES);
        IN_FILE | (self.file as u64) << OFFSET_BITS | self.offset
    }

    /// Returns the place in a file that has this address, or `None` if the address is one of host memory.
    #[must_use]
    pub const fn at(address: u64) -> Option<Self> {
        if address & IN_FILE == 0 {
            return None;
        }
        Some(Self {
            file: (address >> OFFSET_BITS) as u32 & (Self::FILES - 1),
            offset: address & (Self::BYTES - 1),
        })
    }

    /// Returns whether `len` bytes from here on have addresses.
    #[must_use]
    pub const fn has_room_for(self, len: u32) -> bool {
        self.offset + len as u64 <= Self::BYTES
    }
}

//! The receive ring of a packet socket, of either kind.

use super::blocks::Blocks;
use super::slots::Slots;
use super::{PacketConfig, RingKind};
use std::io;
use std::os::fd::BorrowedFd;

/// The next entry of a ring.
#[derive(Debug)]
pub(super) enum Received<'a> {
    /// A complete frame.
    Frame {
        /// Content of the frame.
        bytes: &'a [u8],
        /// Whether the checksum was computed, and not left to hardware.
        checksum_ready: bool,
    },
    /// A frame too large for the ring.
    Truncated,
}

/// A ring and the current position.
#[derive(Debug)]
pub(super) enum Ring {
    Blocks(Blocks),
    Slots(Slots),
}

impl Ring {
    /// Sets up a ring at socket `fd`, for frames of at most `longest` bytes, and maps it.
    ///
    /// # Errors
    /// The kernel refuses the sizes, or there is not enough memory.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        config: &PacketConfig,
        longest: usize,
    ) -> io::Result<Self> {
        Ok(match config.ring {
            RingKind::Blocks => Self::Blocks(Blocks::new(fd, config)?),
            RingKind::Slots => Self::Slots(Slots::new(fd, config, longest)?),
        })
    }

    /// Passes the next frame to `use_it`; returns false if there is no frame now.
    pub(super) fn take(&mut self, use_it: impl FnOnce(Received<'_>)) -> bool {
        match self {
            Self::Blocks(blocks) => blocks.take(use_it),
            Self::Slots(slots) => slots.take(use_it),
        }
    }
}

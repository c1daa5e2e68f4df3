//! A ring of blocks of frames (TPACKET_V3, packet_mmap in the kernel's documentation): the kernel fills a block and then passes it on as a
//! whole.
#![allow(unsafe_code)]

use super::PacketConfig;
use super::ring::Received;
use crate::port::mapping::Mapping;
use crate::port::sys::set_option;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nominal size of a frame slot, bytes; in version 3, frames take as many bytes of a block as they need.
const FRAME_BYTES: u32 = 2048;

/// The mapped ring and the current position.
#[derive(Debug)]
pub(super) struct Blocks {
    mapping: Mapping,
    block_bytes: usize,
    blocks: usize,
    /// The block that is being read or that the kernel passes on next.
    block: usize,
    /// Number of frames left in the block, and the offset of the next frame.
    left: u32,
    offset: usize,
}

impl Blocks {
    /// Sets up a ring at socket `fd` and maps it.
    ///
    /// # Errors
    /// The kernel refuses the sizes, or there is not enough memory.
    pub(super) fn new(fd: BorrowedFd<'_>, config: &PacketConfig) -> io::Result<Self> {
        let request = libc::tpacket_req3 {
            tp_block_size: config.block_bytes,
            tp_block_nr: config.blocks,
            tp_frame_size: FRAME_BYTES,
            tp_frame_nr: config.block_bytes / FRAME_BYTES * config.blocks,
            tp_retire_blk_tov: config.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &[request])?;
        let (blocks, block_bytes) = (config.blocks as usize, config.block_bytes as usize);
        Ok(Self {
            mapping: Mapping::of_socket(fd, blocks * block_bytes, 0)?,
            block_bytes,
            blocks,
            block: 0,
            left: 0,
            offset: 0,
        })
    }

    /// Passes the next frame to `use_it`; returns false if there is no frame now.
    pub(super) fn take(&mut self, use_it: impl FnOnce(Received<'_>)) -> bool {
        if self.left == 0 && !self.open_block() {
            return false;
        }
        self.take_frame(use_it);
        self.left -= 1;
        if self.left == 0 {
            self.close_block();
        }
        true
    }

    /// Checks whether the kernel has passed on the next block.
    fn open_block(&mut self) -> bool {
        loop {
            if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            // SAFETY: the block belongs to this process, and starts with a descriptor of this layout (version 3).
            let header = unsafe { (*self.descriptor()).hdr.bh1 };
            self.left = header.num_pkts;
            self.offset = header.offset_to_first_pkt as usize;
            if self.left > 0 {
                return true;
            }
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.block = (self.block + 1) % self.blocks;
    }

    fn take_frame(&mut self, use_it: impl FnOnce(Received<'_>)) {
        let block_end = self.block_bytes;
        let header_at = self.offset;
        assert!(
            header_at + size_of::<libc::tpacket3_hdr>() <= block_end,
            "the header lies within its block"
        );
        // SAFETY: the block belongs to this process, the header lies within it, and the kernel aligns headers to 16 bytes.
        let header = unsafe { *self.at(header_at).cast::<libc::tpacket3_hdr>() };
        let start = header_at + usize::from(header.tp_mac);
        let len = header.tp_snaplen as usize;
        if header.tp_snaplen < header.tp_len || start + len > block_end {
            use_it(Received::Truncated);
        } else {
            // SAFETY: the block belongs to this process until it is closed, which `use_it` cannot do, and the frame lies within it.
            let bytes = unsafe { std::slice::from_raw_parts(self.at(start), len) };
            let checksum_ready = header.tp_status & libc::TP_STATUS_CSUMNOTREADY == 0;
            use_it(Received::Frame {
                bytes,
                checksum_ready,
            });
        }
        self.offset = header_at + header.tp_next_offset as usize;
    }

    /// Returns the word that determines who owns the block.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the descriptor is at the start of the block in the mapping, aligned to a page; both sides access this word atomically
        // only.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.descriptor()).hdr.bh1.block_status) }
    }

    fn descriptor(&self) -> *mut libc::tpacket_block_desc {
        self.at(0).cast()
    }

    /// Returns an address in the current block.
    fn at(&self, offset: usize) -> *mut u8 {
        let left = self.block_bytes - offset;
        self.mapping
            .at(self.block * self.block_bytes + offset, left)
    }
}

//! A ring of slots for one frame each (TPACKET_V2): the kernel passes on every frame immediately.
#![allow(unsafe_code)]

use super::PacketConfig;
use super::ring::Received;
use crate::port::mapping::Mapping;
use crate::port::sys::set_option;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Space in a slot in addition to the frame, bytes: header, address and alignment.
const SLOT_OVERHEAD: usize = 128;

/// The mapped ring and the current position.
#[derive(Debug)]
pub(super) struct Slots {
    mapping: Mapping,
    slot_bytes: usize,
    slots: usize,
    /// The slot that the kernel passes on next.
    next: usize,
}

impl Slots {
    /// Sets up a ring at socket `fd` and maps it.
    ///
    /// # Errors
    /// The kernel refuses the sizes, or there is not enough memory.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        config: &PacketConfig,
        longest: usize,
    ) -> io::Result<Self> {
        // A power of two divides the block size, so that slots are contiguous across blocks.
        let slot_bytes = (longest + SLOT_OVERHEAD).next_power_of_two();
        let len = config.block_bytes as usize * config.blocks as usize;
        let request = libc::tpacket_req {
            tp_block_size: config.block_bytes,
            tp_block_nr: config.blocks,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (len / slot_bytes) as u32,
        };
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &[request])?;
        Ok(Self {
            mapping: Mapping::of_socket(fd, len, 0)?,
            slot_bytes,
            slots: len / slot_bytes,
            next: 0,
        })
    }

    /// Passes the next frame to `use_it`; returns false if there is no frame now.
    pub(super) fn take(&mut self, use_it: impl FnOnce(Received<'_>)) -> bool {
        let start = self.next * self.slot_bytes;
        let place = self.mapping.at(start, self.slot_bytes);
        let header = place.cast::<libc::tpacket2_hdr>();
        // SAFETY: the header is at the start of the slot, aligned; both sides access this word atomically only.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) };
        let seen = status.load(Ordering::Acquire);
        if seen & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the header is within the slot and aligned. The kernel wrote it before it set the status that was read with `Acquire`, and
        // does not write to the slot until the status is returned below (packet_mmap in the kernel's documentation).
        let (len, kept, offset) = unsafe {
            (
                (*header).tp_len,
                (*header).tp_snaplen as usize,
                usize::from((*header).tp_mac),
            )
        };
        if kept < len as usize || offset + kept > self.slot_bytes {
            use_it(Received::Truncated);
        } else {
            let frame = self.mapping.at(start + offset, kept);
            // SAFETY: the frame is within the slot, which `at` has checked to be in the mapping, and the kernel does not write to it until
            // the slot is returned below, after `use_it` has returned and the reference is gone.
            let bytes = unsafe { std::slice::from_raw_parts(frame, kept) };
            let checksum_ready = seen & libc::TP_STATUS_CSUMNOTREADY == 0;
            use_it(Received::Frame {
                bytes,
                checksum_ready,
            });
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }
}

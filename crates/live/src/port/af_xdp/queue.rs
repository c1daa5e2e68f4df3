//! The socket of one queue, with its rings and frames.
#![allow(unsafe_code)]

use super::AfXdpConfig;
use super::frames::Frames;
use super::ring::{Consumer, Producer};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, xdp_mmap_offsets, xdp_options, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpOptionsFlags, XdpStatistics,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An AF_XDP socket. Each receive chunk is in the fill ring, in the kernel or in the receive ring; each transmit chunk is in the free list,
/// in the transmit ring, in the kernel or in the completion ring.
#[derive(Debug)]
pub(super) struct Queue {
    fill: Producer<u64>,
    receive: Consumer<XdpDesc>,
    transmit: Producer<XdpDesc>,
    completion: Consumer<u64>,
    /// Transmit chunks that are free.
    free: Vec<u64>,
    /// Closed before the frames are freed.
    fd: OwnedFd,
    frames: Frames,
    /// Whether frames longer than a chunk are received in several chunks.
    takes_parts: bool,
    /// The part of such a frame that has been received so far.
    parts: Vec<u8>,
    /// Number of calls that woke up the kernel to process the rings.
    wakeups: u64,
}

/// Outcome of a call to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kicked {
    /// The kernel has sent as many frames as it could.
    Done,
    /// The kernel has sent as many frames as it could, and dropped this number of frames.
    Dropped(u64),
    /// The interface is down.
    LinkDown,
}

impl Queue {
    /// Creates a socket with chunks of `chunk_bytes`, without binding it.
    ///
    /// # Errors
    /// The process lacks the permission, there is not enough memory, or the kernel does not support AF_XDP sockets.
    pub(super) fn new(config: &AfXdpConfig, chunk_bytes: usize) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let (receive, transmit) = (config.receive_frames, config.transmit_frames);
        let frames = Frames::new(receive + transmit, chunk_bytes)?;
        frames.register(fd.as_fd())?;
        set_xdp_umem_fill_ring_size(&fd, receive)?;
        set_xdp_umem_completion_ring_size(&fd, transmit)?;
        set_xdp_rx_ring_size(&fd, receive)?;
        set_xdp_tx_ring_size(&fd, transmit)?;
        let offsets = xdp_mmap_offsets(&fd)?;
        let at = fd.as_fd();
        let mut addresses = frames.addresses();
        let mut fill = Producer::new(at, receive, offsets.fr, XDP_UMEM_PGOFF_FILL_RING)?;
        for address in addresses.by_ref().take(receive as usize) {
            fill.put(address);
        }
        fill.publish();
        Ok(Self {
            fill,
            receive: Consumer::new(at, receive, offsets.rx, XDP_PGOFF_RX_RING)?,
            transmit: Producer::new(at, transmit, offsets.tx, XDP_PGOFF_TX_RING)?,
            completion: Consumer::new(at, transmit, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING)?,
            free: addresses.collect(),
            fd,
            frames,
            takes_parts: false,
            parts: Vec::new(),
            wakeups: 0,
        })
    }

    /// Binds the socket to a queue of an interface. Unless `copies` is set, uses zero copy if the driver supports it. Otherwise the kernel
    /// copies, and splits frames that are longer than a chunk if it supports this (Linux 6.6 and later).
    ///
    /// # Errors
    /// EBUSY if the queue has another socket, also for a moment after that socket was closed.
    pub(super) fn bind(&mut self, interface: u32, queue: u32, copies: bool) -> io::Result<()> {
        let try_with = |flags| {
            let flags = flags | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
            bind(&self.fd, &SocketAddrXdp::new(flags, interface, queue))
        };
        if !copies && try_with(SocketAddrXdpFlags::XDP_ZEROCOPY).is_ok() {
            return Ok(());
        }
        match try_with(SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_SG) {
            Err(Errno::INVAL) => Ok(try_with(SocketAddrXdpFlags::XDP_COPY)?),
            outcome => {
                outcome?;
                self.takes_parts = true;
                Ok(())
            }
        }
    }

    /// Returns whether frames longer than a chunk are received.
    pub(super) fn takes_parts(&self) -> bool {
        self.takes_parts
    }

    /// Returns whether the driver accesses the socket's memory, without copies.
    pub(super) fn is_zero_copy(&self) -> bool {
        xdp_options(&self.fd)
            .is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Passes at most `most` received frames to `use_it`; returns the number of frames.
    pub(super) fn receive(&mut self, most: usize, mut use_it: impl FnMut(&mut [u8])) -> usize {
        let (mut count, mut taken) = (0, 0);
        while count < most
            && let Some(descriptor) = self.receive.take()
        {
            taken += 1;
            // SAFETY: the kernel has returned the chunk through the receive ring; the chunk is given back below, after the frame was used.
            let frame = unsafe { self.frames.received(descriptor.addr, descriptor.len) };
            let continues = descriptor.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            if continues || !self.parts.is_empty() {
                self.parts.extend_from_slice(frame);
                if !continues {
                    use_it(&mut self.parts);
                    self.parts.clear();
                }
            } else {
                use_it(frame);
            }
            count += usize::from(!continues);
            // The ring has space for all receive chunks.
            self.fill.put(self.frames.chunk_of(descriptor.addr));
        }
        if taken > 0 {
            self.receive.release();
            self.fill.publish();
        }
        // A zero-copy driver may wait for free chunks.
        if self.fill.needs_wakeup() {
            self.wakeups += 1;
            // A failure is harmless here.
            let _ = recv(&self.fd, &mut [0_u8; 0], RecvFlags::DONTWAIT);
        }
        count
    }

    /// Puts as many frames into the transmit ring as fit; returns their number. [`Queue::kick`] sends them.
    pub(super) fn put<'a>(&mut self, frames: impl ExactSizeIterator<Item = &'a [u8]>) -> usize {
        while let Some(address) = self.completion.take() {
            self.free.push(self.frames.chunk_of(address));
        }
        self.completion.release();
        let room = self.transmit.room(frames.len() as u32) as usize;
        let room = room.min(self.free.len());
        for frame in frames.take(room) {
            let address = self.free.pop().expect("as many as there is room for");
            // SAFETY: a free chunk does not belong to the kernel: it never did, or has come back through the completion ring.
            unsafe { self.frames.write(address, frame) };
            self.transmit.put(XdpDesc {
                addr: address,
                len: frame.len() as u32,
                options: XdpDescOptions::empty(),
            });
        }
        self.transmit.publish();
        room
    }

    /// Returns whether the transmit ring contains frames for which the kernel must be called.
    pub(super) fn holds_back(&self) -> bool {
        self.transmit.pending() > 0 && self.transmit.needs_wakeup()
    }

    /// Calls the kernel to send the frames in the ring, until it has taken all or cannot take more now: if it copies, each call takes at
    /// most 32 frames.
    ///
    /// # Errors
    /// The interface is gone.
    pub(super) fn kick(&mut self) -> io::Result<Kicked> {
        let mut dropped = 0;
        while self.holds_back() {
            let pending = self.transmit.pending();
            self.wakeups += 1;
            match send(&self.fd, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {}
                // The driver has dropped a frame, which has left the ring.
                Err(Errno::BUSY) => dropped += 1,
                Err(Errno::NETDOWN) => return Ok(Kicked::LinkDown),
                Err(error) => return Err(error.into()),
            }
            if self.transmit.pending() == pending {
                break;
            }
        }
        Ok(match dropped {
            0 => Kicked::Done,
            _ => Kicked::Dropped(dropped),
        })
    }

    /// Returns the kernel's counters of the socket.
    ///
    /// # Errors
    /// Errors of the system call.
    pub(super) fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(xdp_statistics(&self.fd)?)
    }

    pub(super) fn wakeups(&self) -> u64 {
        self.wakeups
    }
}

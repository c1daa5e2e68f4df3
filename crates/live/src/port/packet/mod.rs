//! A packet socket (AF_PACKET) on any Ethernet interface.

mod blocks;
mod ring;
mod slots;
mod transmit;

pub(super) use transmit::Transmit;

use super::interface::{self, InterfaceError};
use super::sys::{bind_packet, packet_statistics, set_option, share_frames};
use super::watched::Watched;
use super::{Batch, CounterSink, LinkInfo, Port, PortDrop, PortDrops, RECEIVE_BATCH, tell_drops};
use baton_iolib::Arena;
use baton_wire::{Span, Time};
use bytes::Bytes;
use ring::{Received, Ring};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Interval at which idle sockets are checked for errors.
const BETWEEN_ERRORS: Span = Span::from_ms(1);

/// How the kernel passes on received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// In blocks (TPACKET_V3): lowest cost per frame, but a frame waits until its block is full or [`PacketConfig::retire_ms`] has passed.
    Blocks,
    /// One by one (TPACKET_V2), without delay.
    Slots,
}

/// Configuration of a packet socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketConfig {
    /// How the kernel passes on received frames.
    pub ring: RingKind,
    /// Number of blocks of the receive ring.
    pub blocks: u32,
    /// Size of a block, bytes; a multiple of the page size.
    pub block_bytes: u32,
    /// Time after which the kernel passes on a block that is not full, ms ([`RingKind::Blocks`]).
    pub retire_ms: u32,
    /// Whether to receive all frames, not only those to the interface's address.
    pub promiscuous: bool,
    /// Whether to pass runs of segments to the kernel as one packet, for the device to cut. Not possible if the other end accepts single
    /// frames only.
    pub merges: bool,
}

impl Default for PacketConfig {
    fn default() -> Self {
        Self {
            ring: RingKind::Blocks,
            blocks: 256,
            block_bytes: 64 * 1024,
            retire_ms: 1,
            promiscuous: false,
            merges: true,
        }
    }
}

/// A packet socket: a ring for received frames, and batches of sent frames that bypass the queueing discipline. Runs of segments are passed
/// to the kernel as one packet, which the device cuts if the receiver does not accept it whole.
#[derive(Debug)]
pub struct PacketSocket {
    ring: Ring,
    /// The socket that owns the ring.
    fd: OwnedFd,
    transmit: Transmit,
    watched: Watched,
    longest: usize,
    /// When to check for errors again.
    errors_at: Time,
    arena: Arena,
    drops: PortDrops,
    /// The kernel's count of frames for which the ring had no space; reading the kernel's counter resets it.
    ring_full: Cell<u64>,
}

impl PacketSocket {
    /// Attaches to the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// The Ethernet interface does not exist, or the process lacks the permission.
    pub fn open(name: &str, config: &PacketConfig) -> Result<Self, InterfaceError> {
        let link = interface::link_info(name)?;
        let index = interface::index(name)?;
        let refuse = |error| InterfaceError::of("attach to", name, error);
        let (ring, fd) = open_ring(&link, index, config).map_err(refuse)?;
        let transmit = Transmit::open(name, index, config.merges).map_err(refuse)?;
        Ok(Self {
            ring,
            fd,
            transmit,
            longest: longest_frame(&link),
            watched: Watched::new(link)?,
            errors_at: Time::ZERO,
            arena: Arena::default(),
            drops: PortDrops::default(),
            ring_full: Cell::new(0),
        })
    }

    /// Attaches `count` sockets to the interface `name`, among which the kernel distributes connections.
    ///
    /// # Errors
    /// The errors of [`PacketSocket::open`].
    pub fn open_several(
        name: &str,
        config: &PacketConfig,
        count: usize,
    ) -> Result<Vec<Self>, InterfaceError> {
        let open = |_| Self::open(name, config);
        let sockets: Vec<Self> = (0..count).map(open).collect::<Result<_, _>>()?;
        if count > 1 {
            let fds: Vec<_> = sockets.iter().map(|socket| socket.fd.as_fd()).collect();
            let shared = share_frames(&fds);
            shared.map_err(|error| InterfaceError::of("distribute the frames of", name, error))?;
        }
        Ok(sockets)
    }

    /// Clears the socket's error. After the interface was switched off, the socket remains ready until its error is read.
    fn take_errors(&mut self, now: Time) {
        if now < self.errors_at {
            return;
        }
        self.errors_at = now + BETWEEN_ERRORS;
        // The next send, or the end of the interface, reports the error.
        let _ = sockopt::socket_error(&self.fd);
    }
}

/// Opens a socket that receives into a ring; returns both.
fn open_ring(link: &LinkInfo, index: u32, config: &PacketConfig) -> io::Result<(Ring, OwnedFd)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    // Protocol 0: the socket receives nothing until it is set up completely.
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    let set = |option, value: i32| set_option(fd.as_fd(), libc::SOL_PACKET, option, &[value]);
    let version = match config.ring {
        RingKind::Blocks => libc::tpacket_versions::TPACKET_V3,
        RingKind::Slots => libc::tpacket_versions::TPACKET_V2,
    };
    set(libc::PACKET_VERSION, version as i32)?;
    let ring = Ring::new(fd.as_fd(), config, longest_frame(link))?;
    set(libc::PACKET_IGNORE_OUTGOING, 1)?;
    if config.promiscuous {
        let request = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(
            fd.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &[request],
        )?;
    }
    bind_packet(fd.as_fd(), index, libc::ETH_P_ALL as u16)?;
    Ok((ring, fd))
}

impl Port for PacketSocket {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.watched.look(now)?;
        let Self {
            ring, arena, drops, ..
        } = self;
        let (start, limit) = (frames.len(), self.longest);
        let end = start + RECEIVE_BATCH;
        while frames.len() < end {
            let taken = ring.take(|received| match received {
                Received::Truncated => drops.add(PortDrop::SuperFrame, 1),
                Received::Frame { bytes, .. } if bytes.len() > limit => {
                    drops.add(PortDrop::SuperFrame, 1);
                }
                Received::Frame {
                    checksum_ready: false,
                    ..
                } => drops.add(PortDrop::ChecksumNotReady, 1),
                Received::Frame { bytes, .. } => frames.push(arena.copy(bytes)),
            });
            if !taken {
                break;
            }
        }
        if frames.len() == start {
            self.take_errors(now);
        }
        Ok(())
    }

    fn send(&mut self, _now: Time, batch: &mut Batch) -> io::Result<()> {
        self.transmit.send(batch, &mut self.drops)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn link(&self) -> &LinkInfo {
        self.watched.link()
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        let mut drops = self.drops;
        if let Ok((_, dropped)) = packet_statistics(self.fd.as_fd()) {
            self.ring_full
                .set(self.ring_full.get() + u64::from(dropped));
        }
        drops.add(PortDrop::ReceiveRingFull, self.ring_full.get());
        sink.counter("port.writes", self.transmit.writes());
        sink.counter("port.arena.chunks", self.arena.allocated());
        sink.counter("port.arena.alone", self.arena.alone());
        tell_drops(&drops, sink);
    }
}

/// Returns the sum of the MTU, an Ethernet header and a VLAN tag, bytes.
fn longest_frame(link: &LinkInfo) -> usize {
    usize::from(link.mtu) + 14 + 4
}

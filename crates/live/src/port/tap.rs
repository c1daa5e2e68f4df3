//! A TAP device: the kernel's end is an interface, the engine's end a file.

use super::interface::{self, InterfaceError};
use super::merge::{Run, VIRTUAL_HEADER_BYTES};
use super::sys::{interface_ioctl, request_for};
use super::{Batch, CounterSink, LinkInfo, Port, PortDrop, PortDrops, RECEIVE_BATCH, tell_drops};
use baton_iolib::Arena;
use baton_wire::Time;
use bytes::{Buf, Bytes};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, writev};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Length of the Ethernet header and a VLAN tag, which are added to the MTU, bytes.
const LINK_OVERHEAD: usize = 14 + 4;

/// Number of slices in one write that need no allocation: a run of full segments and its headers.
const MOST_SLICES: usize = 64;

/// The engine's end of a TAP device. Runs of segments are passed to the kernel as one packet, with a virtual header. In the other direction
/// the kernel computes checksums and cuts segments before it passes frames on, since the device offers neither offload.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    link: LinkInfo,
    arena: Arena,
    drops: PortDrops,
    /// Number of packets passed to the kernel; each may be a run of frames.
    writes: u64,
}

impl Tap {
    /// Attaches to the TAP device `name` in this thread's network namespace. If it does not exist, creates it, and the device disappears
    /// when this value is dropped. `mac` is the engine's address, which must differ from that of the kernel's end.
    ///
    /// # Errors
    /// Another program is attached, the name belongs to another kind of interface, or the process lacks the permission.
    pub fn open(name: &str, mac: [u8; 6]) -> Result<Self, InterfaceError> {
        Self::attach(name, mac, false)
    }

    /// Attaches to `count` queues of the TAP device `name`, among which the kernel distributes connections: it sends the frames of a
    /// connection to the queue that last sent a frame of it.
    ///
    /// # Errors
    /// The errors of [`Tap::open`]; an existing device must have been created with several queues.
    pub fn open_several(
        name: &str,
        mac: [u8; 6],
        count: usize,
    ) -> Result<Vec<Self>, InterfaceError> {
        (0..count)
            .map(|_| Self::attach(name, mac, count > 1))
            .collect()
    }

    #[allow(unsafe_code)]
    fn attach(name: &str, mac: [u8; 6], is_one_of_several: bool) -> Result<Self, InterfaceError> {
        let what = "attach to";
        let refuse = |error| InterfaceError::of(what, name, error);
        let mut request = request_for(name).map_err(refuse)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open("/dev/net/tun", flags, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => InterfaceError::NoTunDriver,
            error => refuse(error.into()),
        })?;
        // Each read or write transfers a virtual header and one Ethernet frame, without packet information.
        let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        if is_one_of_several {
            flags |= libc::IFF_MULTI_QUEUE;
        }
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        let attach = interface_ioctl(fd.as_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request);
        attach.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) if interface::interface_exists(name) => {
                let advice = match is_one_of_several {
                    true => "it is not a TAP device with several queues: give another name, or create it by `ip tuntap add NAME mode tap multi_queue`",
                    false => "it is not a TAP device: give another name, or use it with --iface",
                };
                InterfaceError::Present(name.to_owned(), advice)
            }
            _ => refuse(error),
        })?;
        let link = LinkInfo {
            name: name.to_owned(),
            mac,
            mtu: interface::mtu(name)?,
        };
        Ok(Self {
            fd,
            link,
            arena: Arena::default(),
            drops: PortDrops::default(),
            writes: 0,
        })
    }
}

impl Port for Tap {
    fn receive(&mut self, _now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        let limit = VIRTUAL_HEADER_BYTES + usize::from(self.link.mtu) + LINK_OVERHEAD;
        for _ in 0..RECEIVE_BATCH {
            let read = self.arena.fill(limit, |room| {
                let (written, _) = rustix::io::read(&self.fd, room)?;
                Ok(written)
            });
            match read {
                Ok(mut frame) if frame.len() > VIRTUAL_HEADER_BYTES => {
                    frame.advance(VIRTUAL_HEADER_BYTES);
                    frames.push(frame);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EIO) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self, _now: Time, batch: &mut Batch) -> io::Result<()> {
        while let Some(run) = Run::at_front(batch.iter()) {
            match write_run(self.fd.as_fd(), &run, batch) {
                Ok(_) => self.writes += 1,
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => break,
                // The kernel's end is down.
                Err(Errno::IO) => self.drops.add(PortDrop::LinkDown, run.frames as u64),
                Err(Errno::INVAL) => {
                    self.drops.add(PortDrop::TransmitRefused, run.frames as u64);
                }
                Err(error) => return Err(error.into()),
            }
            batch.sent(run.frames);
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn link(&self) -> &LinkInfo {
        &self.link
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        sink.counter("port.arena.chunks", self.arena.allocated());
        sink.counter("port.arena.alone", self.arena.alone());
        sink.counter("port.writes", self.writes);
        tell_drops(&self.drops, sink);
    }
}

/// Passes a run of frames from the front of `batch` to the kernel.
fn write_run(fd: BorrowedFd<'_>, run: &Run, batch: &Batch) -> Result<usize, Errno> {
    let headers = std::iter::once(run.headers());
    let data = batch
        .iter()
        .take(run.frames)
        .map(|frame| &frame[run.data..]);
    let slices: SmallVec<[IoSlice<'_>; MOST_SLICES]> =
        headers.chain(data).map(IoSlice::new).collect();
    writev(fd, &slices)
}

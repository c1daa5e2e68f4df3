//! A TAP device: the kernel's end is an interface, the engine's end a file.

use super::arena::{Arena, Filled};
use super::interface::{self, InterfaceError};
use super::sys::{interface_ioctl, request_for};
use super::{Batch, CounterSink, LinkInfo, Port, PortDrop, PortDrops, RECEIVE_BATCH, tell_drops};
use baton_wire::Time;
use bytes::Bytes;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Ethernet header and a VLAN tag, which come on top of the MTU.
const LINK_OVERHEAD: usize = 14 + 4;

/// The engine's end of a TAP device. The kernel computes checksums and cuts segments to size before it hands frames over,
/// since the device has no virtual header that could say that it has not.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    link: LinkInfo,
    arena: Arena,
    drops: PortDrops,
}

impl Tap {
    /// Attaches to the TAP device `name` in this thread's network namespace; makes it if there is none, and then it goes
    /// when this is dropped. `mac` is the engine's address, which must not be that of the kernel's end.
    ///
    /// # Errors
    /// Another program is attached, the name is that of another kind of interface, or there is no permission.
    #[allow(unsafe_code)]
    pub fn open(name: &str, mac: [u8; 6]) -> Result<Self, InterfaceError> {
        let what = "attach to";
        let refuse = |error| InterfaceError::of(what, name, error);
        let mut request = request_for(name).map_err(refuse)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open("/dev/net/tun", flags, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => InterfaceError::NoTunDriver,
            error => refuse(error.into()),
        })?;
        // No packet information, no virtual header: a read or a write is one Ethernet frame.
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        interface_ioctl(fd.as_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request)
            .map_err(refuse)?;
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
        })
    }
}

impl Port for Tap {
    fn receive(&mut self, _now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        let limit = usize::from(self.link.mtu) + LINK_OVERHEAD;
        for _ in 0..RECEIVE_BATCH {
            let read = self.arena.fill(limit, |room| {
                let (written, _) = rustix::io::read(&self.fd, room)?;
                Ok(Filled::of(written))
            });
            match read {
                Ok(frame) => frames.push(frame),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EIO) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self, _now: Time, batch: &mut Batch) -> io::Result<()> {
        let mut done = 0;
        let mut outcome = Ok(());
        for frame in batch.iter() {
            match rustix::io::write(&self.fd, frame) {
                Ok(_) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => break,
                // The kernel's end is down.
                Err(Errno::IO) => self.drops.add(PortDrop::LinkDown, 1),
                Err(Errno::INVAL) => self.drops.add(PortDrop::TransmitRefused, 1),
                Err(error) => {
                    outcome = Err(error.into());
                    break;
                }
            }
            done += 1;
        }
        batch.sent(done);
        outcome
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn link(&self) -> &LinkInfo {
        &self.link
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        sink.counter("port.arena.chunks", self.arena.allocated());
        tell_drops(&self.drops, sink);
    }
}

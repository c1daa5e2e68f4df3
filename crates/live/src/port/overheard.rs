//! Captures the frames that the kernel receives and sends at an interface.

use super::interface::{self, InterfaceError};
use super::sys::{Stamped, bind_packet, packet_statistics, receive_stamped, set_option};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Size of the kernel's buffer for waiting frames, bytes.
const BUFFER_BYTES: i32 = 8 << 20;
/// Maximum length of a frame, bytes: a super-segment that hardware would cut.
const LONGEST_FRAME: usize = (64 << 10) + 256;

/// A packet socket that sees the frames that the kernel receives and sends at an interface. Frames that XDP programs have taken are not
/// included.
#[derive(Debug)]
pub struct Overheard {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Overheard {
    /// Opens a socket at the interface `name` of this thread's network namespace.
    ///
    /// # Errors
    /// The interface does not exist, or the process lacks the permission (CAP_NET_RAW).
    pub fn open(name: &str) -> Result<Self, InterfaceError> {
        let refuse = |error: io::Error| InterfaceError::of("capture the frames of", name, error);
        let index = interface::index(name)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = || {
            // Protocol 0: the socket receives nothing until it is set up completely.
            let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
            let set = |option, value| set_option(fd.as_fd(), libc::SOL_SOCKET, option, &[value]);
            set(libc::SO_TIMESTAMPNS, 1)?;
            // Without CAP_NET_ADMIN the default size remains.
            let _ = set(libc::SO_RCVBUFFORCE, BUFFER_BYTES);
            bind_packet(fd.as_fd(), index, libc::ETH_P_ALL as u16)?;
            Ok(fd)
        };
        Ok(Self {
            fd: open().map_err(refuse)?,
            buffer: vec![0; LONGEST_FRAME],
        })
    }

    /// Returns the next frame with its time and direction, or `None` if no frame is waiting.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self) -> io::Result<Option<(Stamped, &[u8])>> {
        match receive_stamped(self.fd.as_fd(), &mut self.buffer) {
            Ok(stamped) => Ok(Some((stamped, &self.buffer[..stamped.kept]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of frames since the last call for which the buffer had no space.
    pub fn take_lost(&self) -> u64 {
        packet_statistics(self.fd.as_fd()).map_or(0, |(_, lost)| u64::from(lost))
    }
}

impl AsFd for Overheard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

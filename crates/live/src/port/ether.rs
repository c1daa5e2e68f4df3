//! Messages in Ethernet frames with an EtherType of their own.

use super::LinkInfo;
use super::interface::{self, InterfaceError};
use super::sys::bind_packet;
use baton_iolib::sleep;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

const HEADER_BYTES: usize = 14;
/// Minimum length of a frame, bytes; shorter frames are padded with zeros.
const LEAST_BYTES: usize = 60;

/// A socket for frames with one EtherType on one interface.
#[derive(Debug)]
pub struct EtherSocket {
    fd: OwnedFd,
    link: LinkInfo,
    ethertype: u16,
    buffer: Vec<u8>,
}

impl EtherSocket {
    /// Opens a socket on the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// The Ethernet interface does not exist, or the process lacks the permission.
    pub fn open(name: &str, ethertype: u16) -> Result<Self, InterfaceError> {
        let link = interface::link_info(name)?;
        let index = interface::index(name)?;
        let refuse = |error| InterfaceError::of("attach to", name, error);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|error| refuse(error.into()))?;
        bind_packet(fd.as_fd(), index, ethertype).map_err(refuse)?;
        let buffer = vec![0; HEADER_BYTES + usize::from(link.mtu)];
        Ok(Self {
            fd,
            link,
            ethertype,
            buffer,
        })
    }

    /// Returns the link that the socket is attached to.
    pub fn link(&self) -> &LinkInfo {
        &self.link
    }

    /// Sends a message to an Ethernet address. The message may be lost.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn send(&self, to: [u8; 6], message: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(LEAST_BYTES.max(HEADER_BYTES + message.len()));
        frame.extend_from_slice(&to);
        frame.extend_from_slice(&self.link.mac);
        frame.extend_from_slice(&self.ethertype.to_be_bytes());
        frame.extend_from_slice(message);
        frame.resize(frame.len().max(LEAST_BYTES), 0);
        match send(&self.fd, &frame, SendFlags::empty()) {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits up to `patience` for a message from another host; returns its sender and content.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self, patience: Duration) -> io::Result<Option<([u8; 6], Vec<u8>)>> {
        let until = Instant::now() + patience;
        loop {
            match recv(&self.fd, self.buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((len, _)) => {
                    let frame = &self.buffer[..len];
                    let from = frame.get(6..12).and_then(|from| from.first_chunk());
                    if let (Some(from), Some(message)) = (from, frame.get(HEADER_BYTES..))
                        && *from != self.link.mac
                    {
                        return Ok(Some((*from, message.to_vec())));
                    }
                }
                Err(Errno::AGAIN) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    let mut fds = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
                    sleep(&mut fds, Some(left))?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

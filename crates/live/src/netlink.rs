//! The common parts of all netlink(7) messages.

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, netlink, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// Length of a message's header, bytes (`struct nlmsghdr`).
pub(crate) const HEADER_BYTES: usize = 16;

/// Flag of a request to the kernel (NLM_F_REQUEST).
const REQUEST: u16 = 1;

/// Flag that requests all entries (NLM_F_DUMP).
pub(crate) const DUMP: u16 = 0x300;
/// Kind of the message that follows the last entry of a dump (NLMSG_DONE).
pub(crate) const DONE: u16 = 3;

/// Length of an attribute's header, bytes (`struct nlattr`).
const ATTRIBUTE_BYTES: usize = 4;

/// Kind of an answer that reports success or an error (NLMSG_ERROR).
const ERROR: u16 = 2;

/// Opens a socket for the routes and interfaces of this thread's network namespace.
///
/// # Errors
/// Errors of the system call.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    // The default protocol, 0, is NETLINK_ROUTE.
    socket_for(None)
}

/// Opens a socket for questions about sockets (NETLINK_SOCK_DIAG).
///
/// # Errors
/// Errors of the system call.
pub(crate) fn diagnosis_socket() -> io::Result<OwnedFd> {
    socket_for(Some(netlink::SOCK_DIAG))
}

fn socket_for(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    Ok(socket_with(family, SocketType::RAW, flags, protocol)?)
}

/// Builds a request with `flags` in addition to NLM_F_REQUEST.
pub(crate) fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::from(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((flags | REQUEST).to_ne_bytes());
    // Sequence number and port number are 0.
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Returns the first of several messages and those after it, or `None` if no complete message is left.
pub(crate) fn split(messages: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = u32::from_ne_bytes(*messages.first_chunk()?) as usize;
    let message = messages.get(..len).filter(|_| len >= HEADER_BYTES)?;
    let behind = messages.get(len.next_multiple_of(4)..);
    Some((message, behind.unwrap_or_default()))
}

/// Returns the kind of an answer, or `None` if the answer is cut off.
pub(crate) fn kind(answer: &[u8]) -> Option<u16> {
    let bytes = answer.get(4..6)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

/// Returns whether the request succeeded, or `None` if the answer does not report that.
pub(crate) fn outcome(answer: &[u8]) -> Option<io::Result<()>> {
    if kind(answer)? != ERROR {
        return None;
    }
    let code = answer
        .get(HEADER_BYTES..)
        .and_then(|rest| rest.first_chunk());
    Some(match code.map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    })
}

/// Attributes, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Attributes(pub(crate) Vec<u8>);

impl Attributes {
    /// Appends an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let len = (ATTRIBUTE_BYTES + value.len()) as u16;
        self.0.extend(len.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// Returns the value of the attribute `wanted`.
pub(crate) fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let header = attributes.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]);
        let value = attributes.get(4..len)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_success_or_error() {
        let answer = |kind: u16, code: i32| {
            let mut message = request(kind, 0, &code.to_ne_bytes());
            message[..4].copy_from_slice(&20_u32.to_ne_bytes());
            message
        };
        assert!(matches!(outcome(&answer(ERROR, 0)), Some(Ok(()))));
        let refused = outcome(&answer(ERROR, -libc::EPERM));
        let code = refused.and_then(|outcome| outcome.err()?.raw_os_error());
        assert_eq!(code, Some(libc::EPERM));
        assert!(outcome(&answer(16, 0)).is_none(), "of another kind");
        let whole = answer(ERROR, 0);
        for len in 0..whole.len() {
            let said = outcome(&whole[..len]);
            assert!(!matches!(said, Some(Ok(()))), "{len} bytes");
        }
    }
}

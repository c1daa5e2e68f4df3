//! What application and broker say to each other: a kind, a length and so many bytes; a socket goes with a request's first byte.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection leaves the kernel. The answer has its state.
pub const TAKE: u32 = 1;
/// A connection, whose state this is, comes back.
pub const GIVE_BACK: u32 = 2;
/// Which policy chooses the connections that are handed over, where an application has none of its own. The answer has its name.
pub const POLICY: u32 = 5;
/// All connections go back to the kernel, and none leaves it any more. The answer says how many have not.
pub const RESTORE_ALL: u32 = 6;
/// Where the connections of all applications are, and why. The answer is JSON: [`ApplicationPlaces`](super::ApplicationPlaces).
pub const PLACES: u32 = 7;
/// From now on the broker asks by this stream, and the application answers.
pub const SUBSCRIBE: u32 = 8;
/// What it asks: where the application's connections are. The answer is JSON: rows of places.
pub const TELL: u32 = 9;
/// It is done.
pub const DONE: u32 = 3;
/// It is not; the bytes are text that says why.
pub const REFUSED: u32 = 4;

/// Longest message, bytes: a connection's buffers can be as long as its windows.
const LONGEST: usize = 64 << 20;

/// Most states are shorter.
const USUAL: usize = 4096;

const HEADER_BYTES: usize = 8;

/// A message, and the socket that came with it.
#[derive(Debug)]
pub struct Message {
    /// One of those above.
    pub kind: u32,
    /// The bytes.
    pub body: Vec<u8>,
    /// The socket.
    pub socket: Option<OwnedFd>,
}

/// Neither sending nor receiving takes longer than this, or it fails.
///
/// # Errors
/// The system does not set it.
pub fn limit_waits(stream: &UnixStream, longest: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(longest))?;
    stream.set_write_timeout(Some(longest))
}

/// Sends a message.
///
/// # Errors
/// The other side is gone or takes nothing, or there are more bytes than a length can say.
pub fn send(
    mut stream: &UnixStream,
    kind: u32,
    body: &[u8],
    socket: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let len = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&kind.to_ne_bytes());
    header[4..].copy_from_slice(&len.to_ne_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets: &[BorrowedFd<'_>] = match &socket {
        Some(socket) => std::slice::from_ref(socket),
        None => &[],
    };
    if !sockets.is_empty() {
        let pushed = control.push(SendAncillaryMessage::ScmRights(sockets));
        debug_assert!(pushed, "there is room");
    }
    let parts = [IoSlice::new(&header), IoSlice::new(body)];
    let sent = sendmsg(stream, &parts, &mut control, SendFlags::NOSIGNAL)?;
    if sent < HEADER_BYTES {
        return Err(io::ErrorKind::WriteZero.into());
    }
    stream.write_all(&body[sent - HEADER_BYTES..])
}

/// The next message; none when the other side is gone.
///
/// # Errors
/// It breaks off, or is longer than any.
pub fn receive(mut stream: &UnixStream) -> io::Result<Option<Message>> {
    let mut header = [0; HEADER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut places = [IoSliceMut::new(&mut header)];
    let received = recvmsg(stream, &mut places, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut socket = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            socket = files.last().or(socket);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut header[received.bytes..])?;
    let [kind, len] = [0, 4].map(|at| {
        let bytes = header[at..].first_chunk().expect("the header has both");
        u32::from_ne_bytes(*bytes)
    });
    if len as usize > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // A length alone costs next to nothing: more memory is taken as it comes.
    let mut body = Vec::with_capacity((len as usize).min(USUAL));
    let found = stream.take(len.into()).read_to_end(&mut body)?;
    if found < len as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(Message { kind, body, socket }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::thread;

    #[test]
    fn messages_of_any_length_arrive_with_their_socket() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let lens = [0, 1, 4096, 3 << 20];
        let sender = thread::spawn(move || {
            for len in lens {
                let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                send(&one, GIVE_BACK, &body, Some(one.as_fd())).expect("somebody reads");
                send(&one, DONE, &body, None).expect("somebody reads");
            }
        });
        for len in lens {
            for (kind, has_socket) in [(GIVE_BACK, true), (DONE, false)] {
                let message = receive(&other).expect("it is whole").expect("it is there");
                assert_eq!((message.kind, message.body.len()), (kind, len));
                assert_eq!(message.socket.is_some(), has_socket);
                let right = (0..len).all(|at| message.body[at] == (at % 251) as u8);
                assert!(right, "{len} bytes");
            }
        }
        sender.join().expect("it sent all");
        assert!(receive(&other).expect("an end").is_none());
    }

    #[test]
    fn a_message_that_breaks_off_or_is_too_long_is_an_error() {
        for header in [
            &[1, 0, 0, 0, 9, 0, 0, 0, 7][..],
            &[1, 0, 0],
            &[1, 0, 0, 0, 255, 255, 255, 255],
        ] {
            let (one, other) = UnixStream::pair().expect("a pair");
            (&one).write_all(header).expect("it fits");
            drop(one);
            assert!(receive(&other).is_err(), "{header:?}");
        }
    }
}

//! What a broker says to applications and to the adapter, and they to it: a kind, a length and so many bytes; files go with the first byte.

use baton_wire::{Flow, SeqNr};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection leaves the kernel, if all that was sent on it is acknowledged. With its socket; the answer has its state.
pub const TAKE: u32 = 1;
/// A connection, whose state this is, comes back. The answer has its new socket.
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
/// The adapter is gone. A connection, whose state this is, was on its way there: it comes back if the adapter has not begun with it. The
/// answer has its new socket.
pub const RECLAIM: u32 = 10;
/// The adapter is gone. A connection that it had comes back, if that is possible: [`Recovery`] as JSON. The answer has its new socket.
pub const RECOVER: u32 = 11;
/// Which process is the adapter. The answer is its number, or 0.
pub const ADAPTER: u32 = 12;
/// From now on whoever asks is the adapter. The answer has the memory for its connections, and what keeps programs attached.
pub const ATTACH: u32 = 13;
/// A socket of the adapter for the packets of this queue.
pub const GIVE_SOCKET: u32 = 14;
/// A packet for the kernel. There is no answer.
pub const INJECT: u32 = 15;
/// The adapter ends in order.
pub const DETACH: u32 = 16;
/// The broker is gone of whoever asks, which is the adapter: it becomes this broker's. With the memory for its connections, and what keeps programs
/// attached.
pub const ADOPT: u32 = 17;
/// After that: all sockets are given, and packets may come by this broker's programs.
pub const TAKE_OVER: u32 = 18;
/// Whether a connection, a flow as JSON, was taken out of the kernel for this application. The answer is `true` or `false`.
pub const KNOWS: u32 = 19;
/// It is done.
pub const DONE: u32 = 3;
/// It is not; the bytes are text that says why.
pub const REFUSED: u32 = 4;

/// Longest message, bytes: a connection's buffers can be as long as its windows.
const LONGEST: usize = 64 << 20;

/// Most states are shorter.
const USUAL: usize = 4096;

const HEADER_BYTES: usize = 8;

/// Files that come with a message at most.
const MOST_FILES: usize = 4;

/// A message, and the files that came with it.
#[derive(Debug)]
pub struct Message {
    /// One of those above.
    pub kind: u32,
    /// The bytes.
    pub body: Vec<u8>,
    /// The files.
    pub files: SmallVec<[OwnedFd; MOST_FILES]>,
}

impl Message {
    /// The socket that it is about.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.files.first().map(OwnedFd::as_fd)
    }
}

/// What an application knows of a connection that it had on an adapter which is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The connection.
    pub flow: Flow,
    /// The sequence number behind all that the adapter was given to send.
    pub sent: SeqNr,
    /// The one behind all that was received from it.
    pub received: SeqNr,
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
/// The other side is gone or takes nothing, or there are more bytes than a length can say, or more files than may be.
pub fn send(
    mut stream: &UnixStream,
    kind: u32,
    body: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let len = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&kind.to_ne_bytes());
    header[4..].copy_from_slice(&len.to_ne_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let parts = [IoSlice::new(&header), IoSlice::new(body)];
    let sent = retry_on_intr(|| sendmsg(stream, &parts, &mut control, SendFlags::NOSIGNAL))?;
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut places = [IoSliceMut::new(&mut header)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(stream, &mut places, &mut control, flags))?;
    let mut files = SmallVec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            files.extend(more);
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
    Ok(Some(Message { kind, body, files }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn messages_of_any_length_arrive_with_their_files() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let lens = [0, 1, 4096, 3 << 20];
        let sender = thread::spawn(move || {
            for len in lens {
                let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                send(&one, GIVE_BACK, &body, &[one.as_fd()]).expect("somebody reads");
                send(&one, ATTACH, &body, &[one.as_fd(); MOST_FILES]).expect("somebody reads");
                send(&one, DONE, &body, &[]).expect("somebody reads");
            }
        });
        for len in lens {
            for (kind, files) in [(GIVE_BACK, 1), (ATTACH, MOST_FILES), (DONE, 0)] {
                let message = receive(&other).expect("it is whole").expect("it is there");
                assert_eq!((message.kind, message.body.len()), (kind, len));
                assert_eq!(message.files.len(), files);
                assert_eq!(message.socket().is_some(), files > 0);
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

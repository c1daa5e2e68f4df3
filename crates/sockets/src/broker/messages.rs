//! Messages between the broker and applications or the adapter: a kind, a length, and that many bytes. Files are sent with the first byte.

use baton_wire::{Flow, SeqNr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Takes a connection, whose socket comes with the request, out of the kernel if all sent data is acknowledged. The answer has the received
/// data that was not read and the state without it, combined by [`returned`].
pub const TAKE: u32 = 25;
/// Puts a connection, encoded by [`returned`], back into the kernel. The answer has its new socket.
pub const GIVE_BACK: u32 = 2;
/// Asks for the policy that selects connections to hand off in applications without a policy of their own. The answer has its name.
pub const POLICY: u32 = 5;
/// Makes all connections return to the kernel and keeps any from leaving it again. The answer says how many have not returned.
pub const RESTORE_ALL: u32 = 6;
/// Asks where the connections of all applications are, and why. The answer is JSON: [`ApplicationPlaces`](super::ApplicationPlaces).
pub const PLACES: u32 = 7;
/// Makes the stream one on which the broker asks and the application answers.
pub const SUBSCRIBE: u32 = 8;
/// Asks an application where its connections are. The answer is JSON: rows of places.
pub const TELL: u32 = 9;
/// Takes back a connection, encoded by [`returned`], whose adapter disappeared during the handoff, provided that the adapter had not
/// started to use it. The answer has its new socket.
pub const RECLAIM: u32 = 10;
/// Takes back, if possible, a connection whose adapter is gone: [`Recovery`] as JSON. The answer has its new socket.
pub const RECOVER: u32 = 11;
/// Asks which process is the adapter. The answer is its process ID, or 0.
pub const ADAPTER: u32 = 12;
/// Makes the sender the adapter. The answer has the memory for its connections, and the files that keep the programs attached.
pub const ATTACH: u32 = 13;
/// Gives the broker the adapter's socket for the packets of one queue.
pub const GIVE_SOCKET: u32 = 14;
/// Delivers a packet to the kernel. There is no answer.
pub const INJECT: u32 = 15;
/// Says that the adapter ends in an orderly way.
pub const DETACH: u32 = 16;
/// Makes the sender, an adapter whose broker is gone, the adapter of this broker. Comes with the memory for its connections and the files
/// that keep the programs attached.
pub const ADOPT: u32 = 17;
/// Follows [`ADOPT`]: all sockets are given, and this broker's programs may deliver packets.
pub const TAKE_OVER: u32 = 18;
/// Asks whether a connection, a flow as JSON, was taken out of the kernel for this application. The answer is `true` or `false`.
pub const KNOWS: u32 = 19;
/// Asks when and why the connections moved that match a [`HistoryQuery`](super::HistoryQuery) as JSON. The answer is JSON:
/// [`HistoryAnswer`](super::HistoryAnswer).
pub const HISTORY: u32 = 23;
/// Asks how often each limit of the broker took effect. The answer is JSON: numbers by name.
pub const COUNTERS: u32 = 21;
/// Asks whether the broker's interface is the loopback interface. The answer is `true` or `false`.
pub const IS_LOOPBACK: u32 = 22;
/// Answers that the request was carried out.
pub const DONE: u32 = 3;
/// Answers that the request was refused. The body is text that says why.
pub const REFUSED: u32 = 4;
/// Answers that the connection cannot come back because the peer has reset it meanwhile. The body is text.
pub const WAS_RESET: u32 = 24;

/// Maximum length of a broker's answer, in bytes.
const LONGEST: usize = 64 << 20;
/// Maximum length of a connection's state with its unread and unacknowledged data, in bytes. An adapter accepts no longer state.
pub const MOST_STATE_BYTES: usize = 16 << 20;
/// Maximum length of requests that contain no state, no packet and no adapter parameters, in bytes.
pub const MOST_SMALL_BYTES: usize = 4096;

const HEADER_BYTES: usize = 8;

/// Returns the first word of a header: the kind of the message in its lower half, the reason of a move in its upper half.
pub(super) fn with_why(kind: u32, why: u16) -> u32 {
    kind | u32::from(why) << 16
}

/// Maximum number of files with a message.
const MOST_FILES: usize = 4;

/// A message and its files.
#[derive(Debug)]
pub struct Message {
    /// One of the constants of this module.
    pub kind: u32,
    /// In requests to move a connection, the reason: [`MoveReason::number`](baton_host::MoveReason::number).
    pub why: u16,
    /// The bytes.
    pub body: Vec<u8>,
    /// The files.
    pub files: SmallVec<[OwnedFd; MOST_FILES]>,
}

impl Message {
    /// Returns the socket that the message is about.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.files.first().map(OwnedFd::as_fd)
    }
}

/// Returns the body of [`GIVE_BACK`]: the number of unread bytes, the bytes that the application has received and its program has not read,
/// and the connection's state.
pub fn returned(unread: &[u8], state: &[u8]) -> Vec<u8> {
    [&(unread.len() as u32).to_le_bytes(), unread, state].concat()
}

/// Splits such a body into the unread bytes and the state. Returns `None` if the body is malformed.
pub fn parts_of_returned(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = body.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

/// What an application knows of a connection whose adapter is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The connection.
    pub flow: Flow,
    /// Sequence number after the last byte that the adapter was given to send.
    pub sent: SeqNr,
    /// Sequence number after the last byte that was received from the adapter.
    pub received: SeqNr,
}

/// Maximum size of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Bytes.
    pub bytes: usize,
    /// Files.
    pub files: usize,
}

impl Most {
    /// Returns the maximum size of a request of this kind.
    pub fn of(kind: u32) -> Self {
        let (bytes, files) = match kind {
            GIVE_BACK | RECLAIM => (MOST_STATE_BYTES, 0),
            TAKE | GIVE_SOCKET => (MOST_SMALL_BYTES, 1),
            // The largest IP packet with an Ethernet header.
            INJECT => (65_536 + 64, 0),
            ATTACH => (MOST_STATE_BYTES / 256, 0),
            ADOPT => (MOST_STATE_BYTES / 256, MOST_FILES),
            _ => (MOST_SMALL_BYTES, 0),
        };
        Self { bytes, files }
    }

    /// Maximum size of a broker's answer.
    const ANSWER: Self = Self {
        bytes: LONGEST,
        files: MOST_FILES,
    };
}

/// Why a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// The message is longer than its kind allows.
    #[error("the message has {len} bytes; expected at most {most}")]
    Bytes {
        /// Length of the message.
        len: usize,
        /// Maximum length.
        most: usize,
    },
    /// The message has more files than its kind allows.
    #[error("the message carries too many files; expected at most {most}")]
    Files {
        /// Maximum number of files.
        most: usize,
    },
}

impl From<Excess> for io::Error {
    fn from(excess: Excess) -> Self {
        Self::new(io::ErrorKind::InvalidData, excess)
    }
}

/// Makes sending and receiving fail after this time.
///
/// # Errors
/// The system does not set the timeouts.
pub fn limit_waits(stream: &UnixStream, longest: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(longest))?;
    stream.set_write_timeout(Some(longest))
}

/// Sends a message.
///
/// # Errors
/// The other side is gone or does not read, or there are too many bytes or files.
pub fn send(
    mut stream: &UnixStream,
    kind: u32,
    body: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let sent = begin(stream, kind, body, files, SendFlags::empty())?;
    if sent < HEADER_BYTES {
        return Err(io::ErrorKind::WriteZero.into());
    }
    stream.write_all(&body[sent - HEADER_BYTES..])
}

/// Sends a message on a non-blocking stream, until `limit` at the latest, however slowly the other side reads.
///
/// # Errors
/// The errors of [`send`]; or the other side has not read enough by then.
pub fn send_until(
    mut stream: &UnixStream,
    kind: u32,
    body: &[u8],
    files: &[BorrowedFd<'_>],
    limit: Instant,
) -> io::Result<()> {
    let mut sent = loop {
        match begin(stream, kind, body, files, SendFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(stream, PollFlags::OUT, Some(limit))?;
            }
            Ok(sent) if sent < HEADER_BYTES => return Err(io::ErrorKind::WriteZero.into()),
            begun => break begun? - HEADER_BYTES,
        }
    };
    while sent < body.len() {
        match stream.write(&body[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => sent += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(stream, PollFlags::OUT, Some(limit))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until a stream is ready for `what`, or its other side is gone.
///
/// # Errors
/// Neither happened by `limit`, or the system call failed.
pub fn wait(stream: &UnixStream, what: PollFlags, limit: Option<Instant>) -> io::Result<()> {
    loop {
        let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut [PollFd::new(stream, what)], timeout.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::INTR) => {}
            ready => return Ok(ready.map(drop)?),
        }
    }
}

/// Sends the header, the files, and as much of the body as fits. Returns the number of bytes sent.
fn begin(
    stream: &UnixStream,
    kind: u32,
    body: &[u8],
    files: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
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
    let flags = flags | SendFlags::NOSIGNAL;
    Ok(retry_on_intr(|| {
        sendmsg(stream, &parts, &mut control, flags)
    })?)
}

/// A message that is being received. Whether a read waits for more depends on the stream.
#[derive(Debug, Default)]
pub struct Incoming {
    header: [u8; HEADER_BYTES],
    /// Number of bytes of the header that have arrived.
    header_len: usize,
    /// The length is known and within the limit.
    is_announced: bool,
    body: Vec<u8>,
    files: SmallVec<[OwnedFd; MOST_FILES]>,
}

/// How much of a message has arrived.
#[derive(Debug)]
pub enum Progress {
    /// Nothing more is available now.
    Waits,
    /// The header has arrived and announces a body of this length. Reported once for a message.
    Announced(usize),
    /// The complete message.
    Whole(Message),
    /// The other side closed the stream after a complete message.
    Gone,
}

impl Incoming {
    /// Returns whether a part of a message has arrived.
    pub fn has_begun(&self) -> bool {
        self.header_len > 0
    }

    /// Reads what has arrived of a message; `most` returns the maximum size for its kind. Closes files that arrive after its first bytes.
    ///
    /// # Errors
    /// The stream ends within the message, or the message is too large ([`Excess`]).
    pub fn read(
        &mut self,
        mut stream: &UnixStream,
        most: impl FnOnce(u32) -> Most,
    ) -> io::Result<Progress> {
        while self.header_len < HEADER_BYTES {
            let read = match self.header_len {
                0 => self.read_first(stream),
                len => stream.read(&mut self.header[len..]),
            };
            match read {
                Ok(0) if self.header_len == 0 => return Ok(Progress::Gone),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.header_len += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return waits(error),
            }
        }
        let [kind, len] = [0, 4].map(|at| {
            let bytes = self.header[at..].first_chunk();
            u32::from_ne_bytes(*bytes.expect("the header has both"))
        });
        let len = len as usize;
        if !self.is_announced {
            let most = most(kind & 0xffff);
            if self.files.len() > most.files {
                return Err(Excess::Files { most: most.files }.into());
            }
            if len > most.bytes {
                let most = most.bytes;
                return Err(Excess::Bytes { len, most }.into());
            }
            self.is_announced = true;
            return Ok(Progress::Announced(len));
        }
        // Announcing a large length takes up no memory: beyond a short message, it is reserved only as bytes arrive.
        let left = len - self.body.len();
        self.body.reserve(left.min(MOST_SMALL_BYTES));
        if left > 0
            && let Err(error) = stream.take(left as u64).read_to_end(&mut self.body)
        {
            return waits(error);
        }
        if self.body.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Self { body, files, .. } = std::mem::take(self);
        let (kind, why) = (kind & 0xffff, (kind >> 16) as u16);
        Ok(Progress::Whole(Message {
            kind,
            why,
            body,
            files,
        }))
    }

    /// Reads the first bytes together with the files.
    fn read_first(&mut self, stream: &UnixStream) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut places = [IoSliceMut::new(&mut self.header)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = retry_on_intr(|| recvmsg(stream, &mut places, &mut control, flags))?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                self.files.extend(more);
            }
        }
        // The kernel has closed the files that did not fit.
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Excess::Files { most: MOST_FILES }.into());
        }
        Ok(received.bytes)
    }
}

fn waits(error: io::Error) -> io::Result<Progress> {
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(Progress::Waits),
        _ => Err(error),
    }
}

/// Receives the next answer of a broker. Returns `None` if the other side is gone.
///
/// # Errors
/// The stream ends within the answer, or the answer is longer than any may be.
pub fn receive(stream: &UnixStream) -> io::Result<Option<Message>> {
    receive_at_most(stream, |_| Most::ANSWER)
}

/// Receives the next message; `most` returns the maximum size for its kind. Returns `None` if the other side is gone.
///
/// # Errors
/// The errors of [`Incoming::read`]; or nothing arrives before the stream's timeout.
pub fn receive_at_most(
    stream: &UnixStream,
    most: impl Fn(u32) -> Most,
) -> io::Result<Option<Message>> {
    let mut incoming = Incoming::default();
    loop {
        match incoming.read(stream, &most)? {
            Progress::Whole(message) => return Ok(Some(message)),
            Progress::Gone => return Ok(None),
            Progress::Announced(_) => {}
            Progress::Waits => return Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_testkit::Pattern;
    use std::thread;

    #[test]
    fn messages_of_any_length_arrive_with_their_files() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let lens = [0, 1, 4096, 3 << 20];
        let sender = thread::spawn(move || {
            for len in lens {
                let body = Pattern::new(0).bytes(len);
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
                Pattern::new(0).check(0, &message.body);
            }
        }
        sender.join().expect("it sent all");
        assert!(receive(&other).expect("an end").is_none());
    }

    #[test]
    fn a_truncated_or_too_long_message_is_an_error() {
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

    fn excess(kind: u32, body: &[u8], files: usize) -> Option<Excess> {
        let (one, other) = UnixStream::pair().expect("a pair");
        send(&one, kind, body, &vec![one.as_fd(); files]).expect("there is room");
        let error = receive_at_most(&other, Most::of).err()?;
        error.downcast().ok()
    }

    #[test]
    fn a_request_is_limited_to_what_its_kind_allows() {
        let long = vec![0; MOST_SMALL_BYTES + 1];
        let (len, most) = (long.len(), MOST_SMALL_BYTES);
        assert_eq!(excess(GIVE_BACK, &long, 0), None);
        for kind in [TAKE, KNOWS, PLACES, SUBSCRIBE, u32::MAX] {
            assert_eq!(excess(kind, &long, 0), Some(Excess::Bytes { len, most }));
            assert_eq!(excess(kind, &long[..most], 0), None);
        }
        for (kind, most) in [(PLACES, 0), (TAKE, 1), (GIVE_BACK, 0), (INJECT, 0)] {
            let one_more = Some(Excess::Files { most });
            assert_eq!(excess(kind, &[], most + 1), one_more, "{kind}");
            assert_eq!(excess(kind, &[], most), None, "{kind}");
        }
    }

    /// Sends more files than any kind of message may have; the kernel closes those for which the buffer has no space.
    #[test]
    fn files_beyond_the_limit_are_closed() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let (left, right) = UnixStream::pair().expect("a pair");
        let files = vec![left.as_fd(); 200];
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(200))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        let header = IoSlice::new(&[0; HEADER_BYTES]);
        sendmsg(&one, &[header], &mut control, SendFlags::empty()).expect("it is sent");
        assert!(receive_at_most(&other, Most::of).is_err());
        drop(left);
        assert_eq!(
            (&right).read(&mut [0; 1]).expect("an end"),
            0,
            "none is left"
        );
    }

    #[test]
    fn a_slow_reader_delays_the_sender_only_until_its_deadline() {
        let (one, other) = UnixStream::pair().expect("a pair");
        one.set_nonblocking(true).expect("it can");
        let body = vec![0; 1 << 20];
        let reads = thread::spawn(move || {
            let mut taken = 0;
            while let Ok(len @ 1..) = (&other).read(&mut [0; 4096]) {
                taken += len;
                thread::sleep(Duration::from_millis(5));
            }
            taken
        });
        let limit = Instant::now() + Duration::from_millis(100);
        let error = send_until(&one, DONE, &body, &[], limit).expect_err("too slow");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(one);
        assert!(reads.join().expect("no panic") < body.len());
    }
}

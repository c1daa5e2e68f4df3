//! Reads from and writes to connections of the adapter, as the kernel would.

use crate::description::{Description, Side};
use crate::pointers;
use crate::reason::Reason;
use crate::session;
use crate::signals;
use crate::sys::{Errno, call, errno_of, outcome};
use crate::timestamping;
use baton_iolib::Arena;
use baton_sockets::{FilePart, Interest, SendTimes, TcpStream, Watched};
use bytes::Bytes;
use libc::{c_int, c_long, c_void, iovec, msghdr, off64_t};
use rustix::fd::BorrowedFd;
use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fstat, seek};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of bytes gathered from small parts, or read from a file, at once.
const PIECE: usize = 64 << 10;
/// Number of bytes whose readability is checked together before they are sent.
const LOOKAHEAD: usize = 256 << 10;

/// Minimum number of bytes of a file for which the adapter reads the file; fewer bytes are sent faster together with data written before.
const LEAST_LENT: usize = 16 << 10;

thread_local! {
    /// Buffer for small parts, taken out while in use: a signal handler may write as well.
    static GATHERED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// Memory for data read from files until the adapter can fetch it.
    static READ: RefCell<Arena> = RefCell::new(Arena::default());
}

/// One call on a connection.
pub struct Call<'a> {
    fd: c_int,
    description: &'a Description,
    stream: &'a TcpStream,
    flags: c_int,
    /// The timestamps that the call's control message asks for its bytes.
    asks: Option<u32>,
    deadline: Option<Instant>,
    waits: bool,
}

impl<'a> Call<'a> {
    /// Creates a call with the flags of recv(2) or send(2). Fails with ENOTCONN for a listener.
    pub fn new(
        fd: c_int,
        description: &'a Description,
        side: Side,
        flags: c_int,
    ) -> Result<Self, Errno> {
        let Some(stream) = description.stream() else {
            if description.is_kernels() {
                Reason::LeftWithParent.count("a connection is used after fork(2)");
            }
            return Err(libc::ENOTCONN);
        };
        let waits = !description.is_nonblocking() && flags & libc::MSG_DONTWAIT == 0;
        let timeout = waits.then(|| description.timeout(side)).flatten();
        Ok(Self {
            fd,
            description,
            stream,
            flags,
            asks: None,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            waits,
        })
    }

    /// Adds the timestamps that a control message asks for (SO_TIMESTAMPING).
    pub fn asking(self, asks: Option<u32>) -> Self {
        Self { asks, ..self }
    }

    /// Makes the kernel's own call, without waiting. Returns `None` if the stream has to be used instead: the kernel does not have the
    /// connection, or the program uses blocking calls.
    fn directly(&self, call: impl FnOnce(c_int) -> c_long) -> Option<Result<usize, Errno>> {
        if self.waits {
            self.stream.end_direct(true);
            return None;
        }
        let flags = self.flags | libc::MSG_DONTWAIT;
        self.stream.directly(|| outcome(call(flags)))
    }

    /// Waits for buffer space, if the call may wait.
    fn wait_for_room(&self) -> Result<(), Errno> {
        self.wait_for(Watched::Stream(self.stream, Interest::WRITABLE))
    }

    /// Waits, if the call may wait.
    fn wait_for(&self, what: Watched<'_>) -> Result<(), Errno> {
        let left = self
            .deadline
            .map(|at| at.saturating_duration_since(Instant::now()));
        if !self.waits || left == Some(Duration::ZERO) {
            return Err(libc::EAGAIN);
        }
        let adapter = session::adapter().ok_or(libc::ENETDOWN)?;
        match signals::wait_beside(adapter, &[what], &[], left, None) {
            Err(libc::EINTR) if self.deadline.is_none() && signals::restarts() => Ok(()),
            waited => waited,
        }
    }

    /// Carries out recv(2) into these parts.
    ///
    /// # Safety
    /// Each part is good for its length.
    pub unsafe fn receive(&self, parts: &[iovec]) -> Result<usize, Errno> {
        if self.flags & libc::MSG_ERRQUEUE != 0 {
            let report = self.stream.take_transmit_time();
            return report.map(|_| 0).ok_or(libc::EAGAIN);
        }
        let nobody = std::ptr::null_mut::<c_void>();
        // SAFETY: by this function's contract.
        let directly = self.directly(|flags| unsafe {
            match parts {
                [one] => call!(
                    SYS_recvfrom,
                    self.fd,
                    one.iov_base,
                    one.iov_len,
                    flags,
                    nobody,
                    nobody
                ),
                _ => {
                    let mut message = message(parts);
                    call!(SYS_recvmsg, self.fd, &raw mut message, flags)
                }
            }
        });
        if let Some(received) = directly {
            if received.is_ok_and(|len| len > 0) && self.flags & libc::MSG_PEEK == 0 {
                self.stream.note_received();
            }
            return received;
        }
        pointers::check_parts(parts)?;
        let mut room = Room {
            parts,
            filled: 0,
            writes: self.flags & libc::MSG_TRUNC == 0,
        };
        let wanted = room.len();
        if wanted == 0 {
            return self.receive_nothing();
        }
        // SAFETY: by this function's contract.
        unsafe {
            match self.flags & libc::MSG_PEEK {
                0 => self.receive_into(&mut room, wanted),
                _ => match self.fitting(&room, wanted)? {
                    0 => Ok(0),
                    most => {
                        let data = self.peek(most)?;
                        room.put(&data);
                        Ok(data.len())
                    }
                },
            }
        }
    }

    /// Returns how many of `most` bytes the next receive into this buffer takes at most; 0 at the end of the stream. If less can be written
    /// and more has arrived, it takes whole segments, or fails with EFAULT if the first one does not fit, as the kernel does.
    fn fitting(&self, room: &Room<'_>, most: usize) -> Result<usize, Errno> {
        let good = room.accessible(most);
        if good == most || self.peek(good + 1)?.len() <= good {
            return Ok(good);
        }
        pointers::copied(good, most)
    }

    /// Receives into an empty buffer: like the kernel, waits once for data, the end or an error.
    fn receive_nothing(&self) -> Result<usize, Errno> {
        match self.stream.peek_bytes(1) {
            Ok(_) => Ok(0),
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(errno_of(&error)),
            Err(_) if !self.waits => Err(libc::EAGAIN),
            Err(_) => {
                let _ = self.wait_for(Watched::Unread(self.stream, 1));
                Ok(0)
            }
        }
    }

    /// # Safety
    /// The buffer is good for its length.
    unsafe fn receive_into(&self, room: &mut Room<'_>, wanted: usize) -> Result<usize, Errno> {
        let wants_all = self.flags & libc::MSG_WAITALL != 0 && self.waits;
        let mut received = 0;
        while received < wanted {
            let most = (wanted - received).min(PIECE);
            let most = match received {
                0 => self.fitting(room, most)?,
                _ => room.accessible(most),
            };
            if most == 0 {
                break;
            }
            let data = match received {
                0 => self.stream.receive(most),
                // The next call reports an error or the end.
                _ => Ok(self.stream.receive_more(most)),
            };
            match data {
                Ok(data) if !data.is_empty() => {
                    received += data.len();
                    // SAFETY: by this function's contract.
                    unsafe { room.put(&data) };
                    continue;
                }
                Ok(_) if !wants_all || received == 0 => break,
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    return Err(errno_of(&error));
                }
                Ok(_) | Err(_) => {}
            }
            match self.wait_for_unread(1) {
                Err(errno) if received == 0 => return Err(errno),
                Ok(true) => {}
                Ok(false) if received == 0 => {}
                Ok(false) | Err(_) => break,
            }
        }
        Ok(received)
    }

    /// Returns up to `wanted` bytes without consuming them, or all of them if the call waits for all (MSG_WAITALL).
    fn peek(&self, wanted: usize) -> Result<Bytes, Errno> {
        let wants_all = self.flags & libc::MSG_WAITALL != 0 && self.waits;
        loop {
            let seen = match self.stream.peek_bytes(wanted) {
                Ok(seen) if seen.len() == wanted || seen.is_empty() || !wants_all => {
                    return Ok(seen);
                }
                Ok(seen) => seen,
                Err(error) if error.kind() == ErrorKind::WouldBlock => Bytes::new(),
                Err(error) => return Err(errno_of(&error)),
            };
            match self.wait_for_unread(seen.len() + 1) {
                Err(errno) if seen.is_empty() => return Err(errno),
                Ok(false) if seen.is_empty() => {}
                Ok(true) => {}
                Ok(false) | Err(_) => return Ok(seen),
            }
        }
    }

    /// Waits until `count` bytes can be read. Returns `false` if they do not arrive, or if a signal interrupts the wait and the call is
    /// restarted.
    fn wait_for_unread(&self, count: usize) -> Result<bool, Errno> {
        self.wait_for(Watched::Unread(self.stream, count))?;
        Ok(self.stream.readiness().unread >= count)
    }

    /// Carries out send(2) of these parts.
    ///
    /// # Safety
    /// Each part is good for its length.
    pub unsafe fn send(&self, parts: &[iovec]) -> Result<usize, Errno> {
        let nobody = std::ptr::null::<c_void>();
        // SAFETY: by this function's contract.
        let directly = self.directly(|flags| unsafe {
            match parts {
                [one] => call!(
                    SYS_sendto,
                    self.fd,
                    one.iov_base,
                    one.iov_len,
                    flags,
                    nobody,
                    0
                ),
                _ => {
                    let message = message(parts);
                    call!(SYS_sendmsg, self.fd, &raw const message, flags)
                }
            }
        });
        if let Some(sent) = directly {
            self.note_sent(sent, 1);
            return sent;
        }
        pointers::check_parts(parts)?;
        let total = pointers::len_of(parts);
        let checked = total.min(PIECE);
        let good = pointers::accessible(parts, checked, false);
        let copied = pointers::copied(good, checked);
        let total = match copied {
            Ok(all) if all == checked => total,
            Ok(whole) => whole,
            Err(_) => 0,
        };
        let parts = &*pointers::first(parts, total);
        let is_held_back = |by: &AtomicBool| by.load(Ordering::Relaxed);
        if self.flags & libc::MSG_MORE != 0
            || is_held_back(&self.description.corked)
            || is_held_back(&self.description.more)
        {
            // If the connection is lost, this call must fail even if it would only hold the data back.
            self.stream.readiness();
        }
        if total == 0 {
            return self
                .send_nothing(copied.is_err())
                .inspect_err(|&errno| self.signal(errno));
        }
        // SAFETY: by this function's contract.
        let slices = parts
            .iter()
            .filter(|part| part.iov_len > 0)
            .map(|part| unsafe {
                std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len)
            });
        self.cork();
        let outcome = if parts.len() > 1 && total <= PIECE {
            // Send the parts as one buffer: small parts would become small segments.
            let mut gathered = GATHERED.take();
            gathered.clear();
            slices.for_each(|slice| gathered.extend_from_slice(slice));
            let outcome = self.send_all(&gathered, true);
            GATHERED.set(gathered);
            outcome
        } else {
            let (mut sent, mut left) = (0, total);
            let mut outcome = Ok(0);
            for slice in slices {
                left -= slice.len();
                outcome = self.send_all(slice, left == 0);
                sent += outcome.unwrap_or_default();
                if outcome != Ok(slice.len()) {
                    break;
                }
            }
            if sent > 0 { Ok(sent) } else { outcome }
        };
        self.uncork();
        outcome.inspect_err(|&errno| self.signal(errno))
    }

    /// Sends no bytes, or bytes that cannot be read: fails as a send with data would, and otherwise with EFAULT if `is_bad`.
    fn send_nothing(&self, is_bad: bool) -> Result<usize, Errno> {
        // Processes a reset that has arrived.
        self.stream.readiness();
        let sent = self
            .stream
            .send(&Bytes::new())
            .map_err(|error| errno_of(&error))?;
        if is_bad && self.stream.send_room().unwrap_or(1) == 0 {
            self.wait_for_room()?;
        }
        match is_bad {
            true => Err(libc::EFAULT),
            false => Ok(sent),
        }
    }

    /// Sends as much as there is buffer space for, or all of the data if the call waits. Data longer than a piece may be partly unreadable.
    fn send_all(&self, data: &[u8], is_last: bool) -> Result<usize, Errno> {
        self.send_by(data.len(), |from| {
            let mut rest = &data[from..];
            if data.len() > PIECE {
                rest = &rest[..readable(rest)?];
            }
            match self.times(is_last) {
                None => (&mut &*self.stream).write(rest),
                Some(asks) => self.stream.write_timed(rest, asks),
            }
        })
    }

    /// Returns the timestamps to request for the bytes sent now; `is_last` says whether they are the last of this call.
    fn times(&self, is_last: bool) -> Option<SendTimes> {
        timestamping::of_call(self.description, self.asks, is_last, self.waits)
    }

    /// Sends `len` bytes by `write`, whose argument is the offset to send from.
    fn send_by(
        &self,
        len: usize,
        mut write: impl FnMut(usize) -> std::io::Result<usize>,
    ) -> Result<usize, Errno> {
        let mut sent = 0;
        while sent < len {
            let outcome = match write(sent) {
                Ok(len) => {
                    sent += len;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room(),
                Err(error) => Err(errno_of(&error)),
            };
            match outcome {
                Ok(()) => {}
                Err(_) if sent > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(sent)
    }

    /// Holds partial segments back if the call has MSG_MORE.
    fn cork(&self) {
        if self.flags & libc::MSG_MORE != 0 {
            // This cannot fail.
            let _ = self.stream.set_cork(true);
            self.description.more.store(true, Ordering::Relaxed);
        }
    }

    /// After a call without MSG_MORE, sends what MSG_MORE has held back.
    fn uncork(&self) {
        let more = self.flags & libc::MSG_MORE != 0;
        if !more && self.description.more.swap(false, Ordering::Relaxed) {
            let corked = self.description.corked.load(Ordering::Relaxed);
            let _ = self.stream.set_cork(corked);
        }
    }

    /// Records a direct send, which took this many enqueues.
    fn note_sent(&self, sent: Result<usize, Errno>, enqueues: usize) {
        if let Ok(sent @ 1..) = sent {
            self.stream.note_sent(enqueues as u32, sent);
        }
    }

    fn signal(&self, errno: Errno) {
        if errno == libc::EPIPE && self.flags & libc::MSG_NOSIGNAL == 0 {
            // SAFETY: the kernel would send this signal, too.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
        }
    }

    /// Carries out sendfile(2) from `offset` on, or from the file's position.
    pub fn send_file(
        &self,
        from: c_int,
        mut offset: Option<&mut off64_t>,
        count: usize,
    ) -> Result<usize, Errno> {
        // SAFETY: the call writes an offset.
        let directly = self.directly(|_| unsafe {
            let offset = offset.as_deref_mut().map_or(std::ptr::null_mut(), |it| it);
            call!(SYS_sendfile, self.fd, from, offset, count)
        });
        if let Some(sent) = directly {
            self.note_sent(sent, sent.unwrap_or(0).div_ceil(PIECE));
            return sent;
        }
        if count > PIECE {
            self.stream.announce(count as u64);
        }
        let mut sent = 0;
        let outcome = loop {
            if sent == count {
                break Ok(sent);
            }
            match self.send_lent(from, offset.as_deref_mut(), count - sent) {
                Some(Ok(len)) => {
                    sent += len;
                    // More would not be taken now.
                    match self.waits {
                        true => continue,
                        false => break Ok(sent),
                    }
                }
                Some(Err(libc::EAGAIN)) => match self.wait_for_room() {
                    Ok(()) => continue,
                    Err(errno) => break Err(errno),
                },
                Some(Err(errno)) => break Err(errno),
                None => {}
            }
            // Read no more than can be sent: the rest would have to be read again. If nothing can be sent any more, the send reports why.
            let room = self.stream.send_room().unwrap_or(PIECE);
            let most = (count - sent).min(PIECE).min(room);
            if most == 0 {
                match self.wait_for_room() {
                    Ok(()) => continue,
                    Err(errno) => break Err(errno),
                }
            }
            let piece =
                match READ.with_borrow_mut(|arena| read(arena, from, offset.as_deref(), most)) {
                    Ok(piece) if piece.is_empty() => break Ok(sent),
                    Ok(piece) => piece,
                    Err(error) => break Err(errno_of(&error)),
                };
            let len = piece.len();
            // Like the kernel, treats every piece as the last of a call.
            let taken = self.send_by(len, |from| match self.times(true) {
                None => self.stream.send(&piece.slice(from..)),
                Some(asks) => self.stream.send_timed(&piece.slice(from..), asks),
            });
            let taken_len = taken.unwrap_or_default();
            sent += taken_len;
            match &mut offset {
                Some(offset) => **offset += taken_len as off64_t,
                None if taken_len < len => {
                    let back = taken_len as off64_t - len as off64_t;
                    // SAFETY: the call only moves a file position.
                    unsafe { call!(SYS_lseek, from, back, libc::SEEK_CUR) };
                }
                None => {}
            }
            match taken {
                Ok(taken) if taken == len => {}
                Ok(_) => break Ok(sent),
                Err(errno) => break Err(errno),
            }
        };
        self.uncork();
        match outcome {
            Err(_) if sent > 0 => Ok(sent),
            outcome => outcome.inspect_err(|&errno| self.signal(errno)),
        }
    }
}

/// Sending files that the adapter reads.
impl Call<'_> {
    /// Sends the beginning of a file's bytes from `offset` on, or from its position, without reading them. Returns how many, or `None` if they
    /// have to be read.
    fn send_lent(
        &self,
        from: c_int,
        offset: Option<&mut off64_t>,
        most: usize,
    ) -> Option<Result<usize, Errno>> {
        if most < LEAST_LENT || self.times(true).is_some() {
            return None;
        }
        // SAFETY: the program keeps its descriptor open while it sends from it.
        let file = unsafe { BorrowedFd::borrow_raw(from) };
        // The adapter may have opened the file by another descriptor, but the program may send only from one that it can read.
        if fcntl_getfl(file)
            .ok()?
            .intersects(OFlags::WRONLY | OFlags::PATH)
        {
            return None;
        }
        let about = fstat(file).ok()?;
        let start = match &offset {
            Some(offset) => **offset,
            None => seek(file, SeekFrom::Current(0)).ok()?.cast_signed(),
        };
        let left = usize::try_from(about.st_size.checked_sub(start)?).ok()?;
        let part = FilePart {
            file,
            about: &about,
            offset: u64::try_from(start).ok()?,
            len: most.min(left),
        };
        if part.len < LEAST_LENT {
            return None;
        }
        let sent = self.stream.send_file(&part)?;
        Some(sent.map_err(|error| errno_of(&error)).inspect(|&len| {
            let len = len as off64_t;
            match offset {
                Some(offset) => *offset += len,
                // The position of a regular file can be set.
                None => drop(seek(file, SeekFrom::Current(len))),
            }
        }))
    }
}

/// Returns how many bytes to send next: only whole segments if the bytes after them cannot be read.
fn readable(data: &[u8]) -> std::io::Result<usize> {
    let wanted = data.len().min(LOOKAHEAD);
    let found = pointers::readable(data.as_ptr(), wanted);
    pointers::copied(found, wanted).map_err(std::io::Error::from_raw_os_error)
}

/// The buffer for received bytes.
struct Room<'a> {
    parts: &'a [iovec],
    /// Number of bytes of the first part that are filled.
    filled: usize,
    /// Whether bytes are written, rather than discarded (MSG_TRUNC, tcp(7)).
    writes: bool,
}

impl Room<'_> {
    /// Returns how many of the next `most` bytes can be written.
    fn accessible(&self, most: usize) -> usize {
        if !self.writes {
            return most;
        }
        let [part, others @ ..] = self.parts else {
            return 0;
        };
        let rest = iovec {
            iov_base: part.iov_base.wrapping_byte_add(self.filled),
            iov_len: part.iov_len - self.filled,
        };
        let good = pointers::accessible(&[rest], most, true);
        match good == rest.iov_len {
            true => good + pointers::accessible(others, most - good, true),
            false => good,
        }
    }

    fn len(&self) -> usize {
        // The kernel takes no more in one call, either.
        pointers::len_of(self.parts).min(c_int::MAX as usize & !0xfff)
    }

    /// # Safety
    /// The buffer has space for the data.
    unsafe fn put(&mut self, mut data: &[u8]) {
        while self.writes
            && let [part, others @ ..] = self.parts
            && !data.is_empty()
        {
            let len = data.len().min(part.iov_len - self.filled);
            // SAFETY: by this function's contract.
            unsafe {
                let to = part.iov_base.cast::<u8>().add(self.filled);
                std::ptr::copy_nonoverlapping(data.as_ptr(), to, len);
            }
            data = &data[len..];
            self.filled += len;
            if self.filled == part.iov_len {
                (self.parts, self.filled) = (others, 0);
            }
        }
    }
}

fn message(parts: &[iovec]) -> msghdr {
    // SAFETY: all zeros are a valid `msghdr`, which has only numbers and pointers.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut();
    message.msg_iovlen = parts.len();
    message
}

/// Reads at most `most` bytes of a file, from `offset` on or from its position.
fn read(
    arena: &mut Arena,
    from: c_int,
    offset: Option<&off64_t>,
    most: usize,
) -> std::io::Result<Bytes> {
    // SAFETY: the program keeps its descriptor open while it sends from it.
    let file = unsafe { BorrowedFd::borrow_raw(from) };
    arena.fill(most, |room| {
        let (read, _) = match offset {
            Some(offset) => rustix::io::pread(file, room, *offset as u64)?,
            None => rustix::io::read(file, room)?,
        };
        Ok(read)
    })
}

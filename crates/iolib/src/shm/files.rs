//! Files that the host has lent to the adapter: how they cross, and how the adapter reads them.
#![allow(unsafe_code)]

use super::reader::Reader;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::{self, Errno};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Maximum number of files that the adapter keeps for a host.
pub(super) const MOST_FILES: u32 = 64;

/// Passes a file with its number to the other side.
///
/// # Errors
/// The system has no resources for it, or the other side is gone.
pub(super) fn pass(stream: &UnixStream, number: u32, file: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let file = [file.as_fd()];
    let pushed = control.push(SendAncillaryMessage::ScmRights(&file));
    debug_assert!(pushed, "there is room");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let number = number.to_le_bytes();
    match sendmsg(stream, &[IoSlice::new(&number)], &mut control, flags)? {
        sent if sent == number.len() => Ok(()),
        _ => Err(Errno::AGAIN),
    }
}

/// Reads what is in memory of a file, from `offset` on, up to the length of `room`. Fails with `AGAIN` if the first byte is not in memory.
///
/// # Errors
/// Errors of preadv2(2).
pub(super) fn read_cached<'a>(
    file: BorrowedFd<'_>,
    offset: u64,
    room: &'a mut [MaybeUninit<u8>],
) -> io::Result<&'a [u8]> {
    let part = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    let (fd, offset) = (file.as_raw_fd(), offset.cast_signed());
    // SAFETY: the call writes to `room`, which is as long as it is told.
    let read = unsafe { libc::preadv2(fd, &raw const part, 1, offset, libc::RWF_NOWAIT) };
    let Ok(len) = usize::try_from(read) else {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    };
    // SAFETY: the call has written this many bytes.
    Ok(unsafe { room[..len].assume_init_ref() })
}

/// The number of a file that the host has passed, and the file; `None` if it is not one that can be read.
type Passed = (u32, Option<Arc<OwnedFd>>);

/// The files that a host has lent. The host is not trusted: it may pass anything that has a descriptor, and change files at any time.
#[derive(Debug)]
pub(super) struct Files {
    stream: UnixStream,
    /// By number modulo [`MOST_FILES`].
    slots: [Option<Passed>; MOST_FILES as usize],
    /// Reads file content that is not in memory; created when it is first needed.
    pub reader: Option<Reader>,
}

impl Files {
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            slots: [const { None }; MOST_FILES as usize],
            reader: None,
        }
    }

    /// Returns the file with this number. Returns `None` if the host has not passed it, and `Some(None)` if the file cannot be read.
    pub fn get(&mut self, number: u32) -> Option<Option<Arc<OwnedFd>>> {
        let has = |slot: &Option<Passed>| matches!(slot, Some((of, _)) if *of == number);
        let slot = (number % MOST_FILES) as usize;
        if !has(&self.slots[slot]) {
            self.take_passed();
        }
        let passed = self.slots[slot].clone();
        passed.filter(|(of, _)| *of == number).map(|(_, file)| file)
    }

    /// Takes the files that the host has passed since the last call.
    fn take_passed(&mut self) {
        for _ in 0..MOST_FILES {
            let Ok(Some((number, file))) = receive(&self.stream) else {
                return;
            };
            self.slots[(number % MOST_FILES) as usize] = Some((number, file.map(Arc::new)));
        }
    }
}

/// Receives the next file, if there is one.
fn receive(stream: &UnixStream) -> io::Result<Option<(u32, Option<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut number = [0; 4];
    let mut place = [IoSliceMut::new(&mut number)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(stream, &mut place, &mut control, flags)?;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last().or(file);
        }
    }
    let is_whole = received.bytes == number.len();
    Ok(is_whole.then(|| (u32::from_le_bytes(number), file.filter(is_readable))))
}

/// Returns whether a descriptor is a regular file, opened for reading.
fn is_readable(file: &OwnedFd) -> bool {
    let is_regular = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    let flags = fcntl_getfl(file).unwrap_or(OFlags::PATH);
    fstat(file).is_ok_and(|about| is_regular(about.st_mode))
        && !flags.intersects(OFlags::WRONLY | OFlags::PATH)
}

#[cfg(all(test, not(miri)))]
mod tests;

//! The host's end of a link through shared memory.

use super::doorbell::{Bell, Button};
use super::end::ShmEnd;
use super::lent::Lent;
use super::mapping::Mapping;
use super::memory::{self, Layout};
use crate::connect::{CONNECT_TIMEOUT, ConnectError};
use crate::counters::LinkCounters;
use crate::handshake::{Geometry, shake_hands};
use crate::live_link::LiveLink;
use crate::pool::{BufferPool, Usage};
use crate::unix_socket;
use baton_bus::Descriptor;
use baton_bus::descriptor::FilePlace;
use baton_bus::link::{HostLink, LinkError, Violation};
use baton_bus::shared::Side;
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::fs::Stat;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Number of files that the adapter sends: the memory, the host's bell, the adapter's button.
pub(super) const FILES: usize = 3;

/// The host's end of shared memory.
#[derive(Debug)]
pub struct ShmHost {
    end: ShmEnd,
    pool: BufferPool,
    lent: Lent,
}

impl ShmHost {
    /// Attaches to the adapter that listens at `path`.
    ///
    /// # Errors
    /// The error explains the reason and what to do about it.
    pub fn connect(path: &Path, wishes: &Geometry) -> Result<Self, ConnectError> {
        let server = format!("`baton live adapter --listen {}`", path.display());
        let stream = unix_socket::connect(path).map_err(|error| {
            ConnectError::Unreachable(unix_socket::explain(&error, &server, "path"))
        })?;
        Self::shake_hands(stream, wishes)
    }

    fn shake_hands(stream: UnixStream, wishes: &Geometry) -> Result<Self, ConnectError> {
        stream
            .set_read_timeout(Some(CONNECT_TIMEOUT))
            .map_err(ConnectError::NoRoom)?;
        let mut files = Vec::new();
        let with_files = WithFiles {
            stream: &stream,
            files: &mut files,
        };
        let geometry = shake_hands(with_files, wishes)?;
        let files = files
            .try_into()
            .map_err(|_| ConnectError::NoAdapter("it sent the wrong number of files"))?;
        Self::from_files(geometry, files, stream)
    }

    /// Creates the host's end from the files that the adapter has sent.
    pub(super) fn from_files(
        geometry: Geometry,
        [file, bell, button]: [OwnedFd; FILES],
        stream: UnixStream,
    ) -> Result<Self, ConnectError> {
        if !memory::is_sound(&file, &geometry).unwrap_or(false) {
            return Err(ConnectError::NoAdapter(
                "its shared memory is not as announced",
            ));
        }
        let layout = Layout::new(&geometry);
        let mapping = Mapping::new(file.as_fd(), layout).map_err(ConnectError::NoRoom)?;
        let (bell, button) = (Bell::from_fd(bell), Button::from_fd(button));
        Ok(Self {
            end: ShmEnd::new(mapping, Side::Host, geometry, bell, button),
            pool: BufferPool::new(geometry.buffers, geometry.buffer_bytes),
            lent: Lent::new(stream),
        })
    }

    /// Begins a use of an open file, which the adapter then reads by itself. `about` describes the file as it is. Returns the address of
    /// its first byte, for one SEND; [`HostLink::free`] ends the use. Returns `None` if the adapter cannot read the file, or has too many
    /// others.
    pub fn lend(&mut self, file: BorrowedFd<'_>, about: &Stat) -> Option<u64> {
        self.lent.lend(file, about)
    }

    /// Returns the sizes of rings and buffers.
    pub fn geometry(&self) -> &Geometry {
        &self.end.geometry
    }
}

impl HostLink for ShmHost {
    type Data = Bytes;

    fn put(&mut self, now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        self.end.put(now, requests)
    }

    fn mask_lazy(&mut self, masked: bool) {
        self.end.mask_lazy(masked);
    }

    fn get(&mut self, now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        self.end.get(now, usize::MAX, responses)
    }

    fn buffer_bytes(&self) -> u32 {
        self.pool.buffer_bytes()
    }

    fn free_buffers(&self) -> usize {
        self.pool.free_buffers()
    }

    fn place(&mut self, data: Bytes) -> Result<u64, Bytes> {
        if data.len() > self.pool.buffer_bytes() as usize {
            return Err(data);
        }
        let Some(address) = self.pool.allocate(Usage::Placed) else {
            return Err(data);
        };
        self.end.write(address as usize, &data);
        Ok(address)
    }

    fn append(&mut self, address: u64, used: u32, data: &Bytes) -> bool {
        let fits = used as usize + data.len() <= self.pool.buffer_bytes() as usize;
        if fits {
            self.end.write(address as usize + used as usize, data);
        }
        fits
    }

    fn reserve(&mut self) -> Option<u64> {
        self.pool.allocate(Usage::Reserved)
    }

    fn take(&mut self, address: u64, len: u32) -> Result<Bytes, Violation> {
        self.pool.check_reserved(address, len)?;
        let data = self.end.read(address as usize, len);
        self.pool.release(address);
        Ok(data)
    }

    fn free(&mut self, address: u64) {
        match FilePlace::at(address) {
            Some(place) => self.lent.release(place.file),
            None => self.pool.release(address),
        }
    }
}

impl LiveLink for ShmHost {
    fn has_news(&mut self) -> Result<bool, LinkError> {
        self.end.has_news()
    }

    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
        self.end.prepare_to_sleep()
    }

    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
        self.end.prepare_to_sleep_for_room()
    }

    fn interest(&self) -> PollFlags {
        PollFlags::IN
    }

    fn counters(&self) -> &LinkCounters {
        &self.end.counters
    }
}

impl AsFd for ShmHost {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

/// Reads a stream and collects the files that are sent along.
struct WithFiles<'a> {
    stream: &'a UnixStream,
    files: &'a mut Vec<OwnedFd>,
}

impl Write for WithFiles<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for WithFiles<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut places = [IoSliceMut::new(bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(self.stream, &mut places, &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        Ok(received.bytes)
    }
}

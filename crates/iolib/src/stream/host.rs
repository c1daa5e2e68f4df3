//! The host's end of a link over a stream.

use super::channel::{Channel, MOST_AT_ONCE};
use super::message::{
    Kind, REPLY_HEAD_BYTES, ReadRequest, WRITE_HEAD_BYTES, long_number, read_descriptors,
};
use crate::arena::Arena;
use crate::connect::{CONNECT_TIMEOUT, ConnectError};
use crate::counters::LinkCounters;
use crate::handshake::{Geometry, shake_hands};
use crate::live_link::LiveLink;
use crate::pool::{BufferPool, Usage};
use baton_bus::Descriptor;
use baton_bus::link::{HostLink, LinkError, Violation};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};

/// The host's end of a link over TCP.
pub type TcpHost = StreamHost<TcpStream>;

/// The host's end of a link over a stream. Each use of it also answers the adapter's reads.
#[derive(Debug)]
pub struct StreamHost<S> {
    channel: Channel<S>,
    pool: BufferPool,
    memory: Box<[u8]>,
    /// Responses that have arrived and have not been fetched.
    responses: Vec<Descriptor>,
    /// Reads of the adapter that have not been answered yet.
    reads: VecDeque<ReadRequest>,
    arena: Arena,
}

impl TcpHost {
    /// Attaches to the adapter that listens at `address`.
    ///
    /// # Errors
    /// The error explains the reason and what to do about it.
    pub fn connect(address: impl ToSocketAddrs, wishes: &Geometry) -> Result<Self, ConnectError> {
        let stream = connect(address).map_err(|error| {
            let advice = "start `baton live adapter --listen-tcp` there first, or give its address";
            ConnectError::Unreachable(format!("{error}; {advice}"))
        })?;
        let prepared = stream
            .set_read_timeout(Some(CONNECT_TIMEOUT))
            .and_then(|()| super::listener::prepare(&stream));
        prepared.map_err(ConnectError::NoRoom)?;
        let geometry = shake_hands(&stream, wishes)?;
        stream.set_nonblocking(true).map_err(ConnectError::NoRoom)?;
        Ok(Self::over(stream, geometry))
    }
}

/// Connects to the first address that can be reached.
fn connect(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

impl<S: Read + Write> StreamHost<S> {
    /// Creates the host's end over a nonblocking stream, with an adapter at the other end that has agreed to `geometry`.
    pub fn over(stream: S, geometry: Geometry) -> Self {
        Self {
            channel: Channel::new(stream, geometry),
            pool: BufferPool::new(geometry.buffers, geometry.buffer_bytes),
            memory: vec![0; geometry.pool_bytes() as usize].into(),
            responses: Vec::new(),
            reads: VecDeque::new(),
            arena: Arena::default(),
        }
    }

    /// Returns the sizes of rings and buffers.
    pub fn geometry(&self) -> &Geometry {
        &self.channel.geometry
    }

    /// Returns the stream, for other uses. The link misses anything that is read from or written to it this way.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.channel.stream
    }

    /// Processes arrived messages, and sends replies. Messages stay in the stream while too many responses wait to be fetched.
    fn advance(&mut self) -> Result<(), Violation> {
        for _ in 0..MOST_AT_ONCE {
            if self.responses.len() >= self.channel.geometry.ring_depth as usize {
                break;
            }
            let geometry = self.channel.geometry;
            let Some((kind, rest)) = self.channel.next_message()? else {
                break;
            };
            match kind {
                Kind::Descriptors => read_descriptors(rest, &mut self.responses)?,
                Kind::Read => {
                    let read = ReadRequest::decode(rest);
                    geometry.check_range(read.address, read.len)?;
                    // Only buffers can be read, and there is no reason to read a buffer twice.
                    if self.reads.len() >= geometry.buffers as usize {
                        let ReadRequest { id, len, .. } = read;
                        return Err(Violation::Unwanted { id, len });
                    }
                    self.reads.push_back(read);
                }
                Kind::Write => {
                    let (address, data) = (long_number(rest), &rest[WRITE_HEAD_BYTES..]);
                    let offset = geometry.check_range(address, data.len() as u32)?;
                    self.memory[offset..offset + data.len()].copy_from_slice(data);
                    self.channel.counters.bytes_in += data.len() as u64;
                }
                Kind::Reply => return Err(Violation::Message(Kind::Reply as u8)),
            }
        }
        self.reply();
        Ok(())
    }

    /// Answers the adapter's reads while there is space.
    fn reply(&mut self) {
        while !self.channel.is_full()
            && let Some(ReadRequest { id, len, address }) = self.reads.pop_front()
        {
            let (offset, len) = (address as usize, len as usize);
            self.channel
                .begin_message(Kind::Reply, REPLY_HEAD_BYTES + len);
            self.channel.append(&id.to_le_bytes());
            self.channel.append(&self.memory[offset..offset + len]);
            self.channel.counters.bytes_out += len as u64;
            if self.channel.is_full() {
                self.channel.flush();
            }
        }
        self.channel.flush();
    }
}

impl<S: Read + Write> HostLink for StreamHost<S> {
    type Data = Bytes;

    fn put(&mut self, _: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        self.channel.put(requests)
    }

    fn get(&mut self, _: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        self.advance()?;
        if self.responses.is_empty() && self.channel.is_gone() {
            return Err(LinkError::Gone);
        }
        responses.append(&mut self.responses);
        Ok(())
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
        let offset = address as usize;
        self.memory[offset..offset + data.len()].copy_from_slice(&data);
        Ok(address)
    }

    fn append(&mut self, address: u64, used: u32, data: &Bytes) -> bool {
        let fits = used as usize + data.len() <= self.pool.buffer_bytes() as usize;
        if fits {
            let offset = address as usize + used as usize;
            self.memory[offset..offset + data.len()].copy_from_slice(data);
        }
        fits
    }

    fn reserve(&mut self) -> Option<u64> {
        self.pool.allocate(Usage::Reserved)
    }

    fn take(&mut self, address: u64, len: u32) -> Result<Bytes, Violation> {
        self.pool.check_reserved(address, len)?;
        let offset = address as usize;
        let data = self.arena.copy(&self.memory[offset..offset + len as usize]);
        self.pool.release(address);
        Ok(data)
    }

    fn free(&mut self, address: u64) {
        self.pool.release(address);
    }
}

impl<S: Read + Write + AsFd> LiveLink for StreamHost<S> {
    fn has_news(&mut self) -> Result<bool, LinkError> {
        self.advance()?;
        Ok(!self.responses.is_empty() || self.channel.has_room_again() || self.channel.is_gone())
    }

    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
        let sleeps = !self.has_news()?;
        self.channel.count_sleep(sleeps);
        Ok(sleeps)
    }

    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
        Ok(self.channel.prepare_to_sleep_for_room())
    }

    fn interest(&self) -> PollFlags {
        self.channel.interest()
    }

    fn counters(&self) -> &LinkCounters {
        &self.channel.counters
    }
}

impl<S: AsFd> AsFd for StreamHost<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.stream.as_fd()
    }
}

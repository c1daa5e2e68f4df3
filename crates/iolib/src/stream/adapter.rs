//! The adapter's end of a link over a stream.

use super::channel::{Channel, MOST_AT_ONCE};
use super::message::{
    Kind, REPLY_HEAD_BYTES, ReadRequest, WRITE_HEAD_BYTES, number, read_descriptors,
};
use crate::application::Application;
use crate::arena::Arena;
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use crate::live_link::LiveLink;
use baton_bus::Descriptor;
use baton_bus::descriptor::whole_entries;
use baton_bus::link::{AdapterLink, Dma, DmaId, LinkError, Violation};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// The adapter's end of a link over TCP.
pub type TcpAdapter = StreamAdapter<TcpStream>;

/// The adapter's end of a link over a stream.
#[derive(Debug)]
pub struct StreamAdapter<S> {
    channel: Channel<S>,
    /// Requests that have arrived; those before `got` have been fetched.
    requests: Vec<Descriptor>,
    got: usize,
    /// Reads that the host has not answered yet, in order.
    reads: VecDeque<(DmaId, u32)>,
    /// Transfers that are done but not reported yet; at most as many as the adapter has begun.
    done: VecDeque<Dma<Bytes>>,
    arena: Arena,
    application: Application,
}

impl<S: Read + Write> StreamAdapter<S> {
    /// Creates the adapter's end over a nonblocking stream, with a host at the other end that knows `geometry`.
    pub fn over(stream: S, geometry: Geometry, application: Application) -> Self {
        Self {
            channel: Channel::new(stream, geometry),
            requests: Vec::new(),
            got: 0,
            reads: VecDeque::new(),
            done: VecDeque::new(),
            arena: Arena::default(),
            application,
        }
    }

    /// Returns the application at the other end.
    pub fn application(&self) -> &Application {
        &self.application
    }

    /// Returns the sizes of rings and buffers.
    pub fn geometry(&self) -> &Geometry {
        &self.channel.geometry
    }

    /// Returns the stream, for other uses. The link misses anything that is read from or written to it this way.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.channel.stream
    }

    /// Processes arrived messages. Once a ring's worth of requests is waiting, later messages stay in the stream until the requests are
    /// fetched.
    fn advance(&mut self) -> Result<(), Violation> {
        self.channel.flush();
        if self.got == self.requests.len() {
            self.requests.clear();
            self.got = 0;
        }
        for _ in 0..MOST_AT_ONCE {
            if self.requests.len() >= self.channel.geometry.ring_depth as usize {
                break;
            }
            let Some((kind, rest)) = self.channel.next_message()? else {
                break;
            };
            match kind {
                Kind::Descriptors => read_descriptors(rest, &mut self.requests)?,
                Kind::Reply => {
                    let (id, data) = (number(rest), &rest[REPLY_HEAD_BYTES..]);
                    let len = data.len() as u32;
                    if self.reads.pop_front() != Some((DmaId(id), len)) {
                        return Err(Violation::Unwanted { id, len });
                    }
                    let (id, data) = (DmaId(id), self.arena.copy(data));
                    self.channel.counters.bytes_in += u64::from(len);
                    self.done.push_back(Dma::Read { id, data });
                }
                Kind::Read | Kind::Write => return Err(Violation::Message(kind as u8)),
            }
        }
        Ok(())
    }
}

impl<S: Read + Write> AdapterLink for StreamAdapter<S> {
    type Data = Bytes;

    fn get(
        &mut self,
        _: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        self.advance()?;
        let waiting = &self.requests[self.got..];
        let Some(head) = waiting.first() else {
            return if self.channel.is_gone() {
                Err(LinkError::Gone)
            } else {
                Ok(())
            };
        };
        let taken = whole_entries(waiting, most.max(1 + head.continuations()));
        requests.extend_from_slice(&waiting[..taken]);
        self.got += taken;
        Ok(())
    }

    fn put(&mut self, _: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        self.channel.put(responses)
    }

    fn read(&mut self, _: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError> {
        self.channel.geometry.check_range(address, len)?;
        let read = ReadRequest {
            id: id.0,
            len,
            address,
        };
        let bytes = read.to_bytes();
        self.channel.begin_message(Kind::Read, bytes.len());
        self.channel.append(&bytes);
        self.reads.push_back((id, len));
        Ok(())
    }

    fn write(&mut self, _: Time, id: DmaId, address: u64, data: Bytes) -> Result<(), LinkError> {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.channel.geometry.check_range(address, len)?;
        let rest = WRITE_HEAD_BYTES + data.len();
        self.channel.begin_message(Kind::Write, rest);
        self.channel.append(&address.to_le_bytes());
        self.channel.append(&data);
        self.channel.counters.bytes_out += u64::from(len);
        // The descriptor that announces the data follows it through the stream.
        self.done.push_back(Dma::Written { id });
        Ok(())
    }

    fn poll_dma(&mut self, _: Time) -> Result<Option<Dma<Bytes>>, LinkError> {
        if self.done.is_empty() && !self.reads.is_empty() {
            self.advance()?;
        }
        Ok(self.done.pop_front())
    }
}

impl<S: Read + Write + AsFd> LiveLink for StreamAdapter<S> {
    fn has_news(&mut self) -> Result<bool, LinkError> {
        self.advance()?;
        Ok(self.got < self.requests.len()
            || !self.done.is_empty()
            || self.channel.has_room_again()
            || self.channel.is_gone())
    }

    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
        let sleeps = !self.has_news()?;
        self.channel.count_sleep(sleeps);
        Ok(sleeps)
    }

    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
        Ok(self.done.is_empty() && self.channel.prepare_to_sleep_for_room())
    }

    fn interest(&self) -> PollFlags {
        self.channel.interest()
    }

    fn counters(&self) -> &LinkCounters {
        &self.channel.counters
    }
}

impl<S: AsFd> AsFd for StreamAdapter<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.stream.as_fd()
    }
}

//! Messages in and out of a stream that does not block.

use super::message::{HEADER_BYTES, Header, Kind, most_bytes};
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use baton_bus::Descriptor;
use baton_bus::descriptor::whole_entries;
use baton_bus::link::{LinkError, Violation};
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};

/// Bytes that are read at a time, and that wait to be sent before descriptors are no longer taken.
const CHUNK_BYTES: usize = 64 * 1024;
/// Messages that are taken in before something else has its turn.
pub(super) const MOST_AT_ONCE: usize = 256;

/// The stream, what has been read of it and not been used, and what is to be written.
#[derive(Debug)]
pub(super) struct Channel<S> {
    pub stream: S,
    pub geometry: Geometry,
    pub counters: LinkCounters,
    input: Box<[u8]>,
    /// Where in `input` the next message begins.
    begin: usize,
    /// Where what has been read ends.
    end: usize,
    output: Vec<u8>,
    /// Bytes of `output` that are sent.
    sent: usize,
    /// Nothing more will come.
    gone: bool,
    /// Nothing more can be sent; what was sent before may still come.
    mute: bool,
    /// The last put found less room than it wanted.
    short: bool,
    /// It sleeps until there is room, and does not look at what comes.
    deaf: bool,
}

impl<S: Read + Write> Channel<S> {
    pub fn new(stream: S, geometry: Geometry) -> Self {
        Self {
            stream,
            geometry,
            counters: LinkCounters::default(),
            input: vec![0; most_bytes(&geometry) + CHUNK_BYTES].into(),
            begin: 0,
            end: 0,
            output: Vec::new(),
            sent: 0,
            gone: false,
            mute: false,
            short: false,
            deaf: false,
        }
    }

    /// Whether the other side is gone; what it said before may still be there.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether there is something to send.
    pub fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether descriptors that were not taken would be now.
    pub fn has_room_again(&self) -> bool {
        self.short && !self.is_full()
    }

    /// Whether so much waits to be sent that it should not become more.
    pub fn is_full(&self) -> bool {
        self.output.len() - self.sent >= CHUNK_BYTES
    }

    /// What to wait for at the stream. That the other side is gone is told in any case.
    pub fn interest(&self) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, !self.deaf);
        interest.set(PollFlags::OUT, self.has_output());
        interest
    }

    /// Gets ready to sleep until there is room to go on; false when there is.
    pub fn prepare_to_sleep_for_room(&mut self) -> bool {
        self.flush();
        self.deaf = !(self.has_room_again() || self.gone || self.mute);
        self.count_sleep(self.deaf);
        self.deaf
    }

    /// Counts whether the side goes to sleep that was about to.
    pub fn count_sleep(&mut self, sleeps: bool) {
        if sleeps {
            self.counters.sleeps += 1;
        } else {
            self.counters.sleeps_saved += 1;
        }
    }

    /// Sends descriptors, as one message. Gives how many were taken: whole entries, as many as a ring holds, or, when too much waits
    /// already, none.
    pub fn put(&mut self, descriptors: &[Descriptor]) -> Result<usize, LinkError> {
        self.flush();
        if self.gone || self.mute {
            return Err(LinkError::Gone);
        }
        let taken = if self.is_full() {
            0
        } else {
            whole_entries(descriptors, self.geometry.ring_depth as usize)
        };
        self.short = taken < descriptors.len();
        if taken == 0 {
            return Ok(0);
        }
        let descriptors = &descriptors[..taken];
        self.counters.transfers += 1;
        self.begin_message(Kind::Descriptors, size_of_val(descriptors));
        for descriptor in descriptors {
            self.output.extend_from_slice(&descriptor.to_bytes());
        }
        self.flush();
        Ok(taken)
    }

    /// Begins a message; exactly `len` bytes follow, by [`Channel::append`].
    pub fn begin_message(&mut self, kind: Kind, len: usize) {
        let header = Header { kind, len }.to_bytes();
        self.output.extend_from_slice(&header);
    }

    /// Appends to a message.
    pub fn append(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Sends as much as the stream takes.
    pub fn flush(&mut self) {
        self.deaf = false;
        while self.has_output() && !self.mute {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => self.mute = true,
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.mute = true,
            }
        }
        if self.mute {
            self.sent = self.output.len();
        }
        if !self.has_output() {
            self.output.clear();
            self.sent = 0;
        } else if self.sent >= CHUNK_BYTES {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// The next message, its kind and the rest of it, if all of it is there. Reads when it is not.
    pub fn next_message(&mut self) -> Result<Option<(Kind, &[u8])>, Violation> {
        loop {
            if let Some(header) = self.next_header()? {
                let rest = self.begin + HEADER_BYTES;
                if self.end - rest >= header.len {
                    self.begin = rest + header.len;
                    return Ok(Some((header.kind, &self.input[rest..rest + header.len])));
                }
            }
            if !self.read() {
                return Ok(None);
            }
        }
    }

    fn next_header(&self) -> Result<Option<Header>, Violation> {
        let unused = &self.input[self.begin..self.end];
        let header = unused.first_chunk::<HEADER_BYTES>();
        header
            .map(|&bytes| Header::decode(bytes, &self.geometry))
            .transpose()
    }

    /// Reads what has come; false when nothing has.
    fn read(&mut self) -> bool {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.input.len() - self.end < CHUNK_BYTES {
            // What is there is part of one message, so a chunk more fits after it has been moved.
            self.input.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        loop {
            if self.gone {
                return false;
            }
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => self.gone = true,
                Ok(len) => {
                    self.end += len;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => self.gone = true,
            }
        }
    }
}

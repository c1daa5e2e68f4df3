//! Messages over a nonblocking stream.

use super::message::{HEADER_BYTES, Header, Kind, most_bytes};
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use baton_bus::Descriptor;
use baton_bus::descriptor::whole_entries;
use baton_bus::link::{LinkError, Violation};
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};

/// Number of bytes to read at a time; also the number of unsent bytes from which on no more descriptors are taken.
const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of messages to process before other work gets its turn.
pub(super) const MOST_AT_ONCE: usize = 256;

/// The stream, with the data that was read from it but not used yet, and the data still to be written.
#[derive(Debug)]
pub(super) struct Channel<S> {
    pub stream: S,
    pub geometry: Geometry,
    pub counters: LinkCounters,
    input: Box<[u8]>,
    /// Start of the next message in `input`.
    begin: usize,
    /// End of the data in `input`.
    end: usize,
    output: Vec<u8>,
    /// Number of bytes of `output` that have been sent.
    sent: usize,
    /// Whether no more data will arrive.
    gone: bool,
    /// Whether nothing can be sent any more; data may still arrive.
    mute: bool,
    /// Whether the last put found less space than it needed.
    short: bool,
    /// Whether this side sleeps until there is space, and ignores arriving data.
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

    /// Returns whether the other side is gone; data that it sent before may still be here.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns whether there are unsent bytes.
    pub fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Returns whether a put that fell short could continue now.
    pub fn has_room_again(&self) -> bool {
        self.short && !self.is_full()
    }

    /// Returns whether so much data is unsent that no more should be added.
    pub fn is_full(&self) -> bool {
        self.output.len() - self.sent >= CHUNK_BYTES
    }

    /// Returns the events to wait for at the stream. The end of the other side is reported in any case.
    pub fn interest(&self) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, !self.deaf);
        interest.set(PollFlags::OUT, self.has_output());
        interest
    }

    /// Prepares to sleep until there is space for more output; returns `false` if there is.
    pub fn prepare_to_sleep_for_room(&mut self) -> bool {
        self.flush();
        self.deaf = !(self.has_room_again() || self.gone || self.mute);
        self.count_sleep(self.deaf);
        self.deaf
    }

    /// Counts whether a side that was about to sleep does so.
    pub fn count_sleep(&mut self, sleeps: bool) {
        if sleeps {
            self.counters.sleeps += 1;
        } else {
            self.counters.sleeps_saved += 1;
        }
    }

    /// Sends descriptors as one message. Returns how many were taken: whole entries, as many as a ring holds, or none if too much data is
    /// unsent.
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

    /// Begins a message; exactly `len` bytes must follow by [`Channel::append`].
    pub fn begin_message(&mut self, kind: Kind, len: usize) {
        let header = Header { kind, len }.to_bytes();
        self.output.extend_from_slice(&header);
    }

    /// Appends bytes to the message.
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

    /// Returns the kind and the rest of the next message once it is complete. Reads from the stream if it is not.
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

    /// Reads arrived data; returns `false` if there is none.
    fn read(&mut self) -> bool {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.input.len() - self.end < CHUNK_BYTES {
            // The data is part of a single message, so after moving it there is space for another chunk.
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

//! Ways to send descriptors from one process to another.

use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Request};
use baton_bus::link::{AdapterLink, HostLink};
use baton_iolib::{ShmAdapter, ShmHost, Spin, wait};
use baton_wire::{Span, Time};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum number of descriptors sent or received at a time.
const MOST: usize = 128;
const BYTES: usize = Descriptor::BYTES as usize;

baton_named::named! {
    /// The carriers that are compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Shared memory with rings of the default depth.
        SharedMemory => "shared memory, rings of 128",
        /// Shared memory with rings that hold several of the longest batches, as the buffers of sockets and pipes do.
        DeepRings => "shared memory, rings of 1024",
        SocketPair => "socket pair",
        Pipe => "pipe",
    }
}

/// Returns a descriptor that needs no answer.
pub fn plain() -> Descriptor {
    request(0)
}

/// Returns a descriptor that the other side sends back.
pub fn to_be_answered() -> Descriptor {
    request(1)
}

fn request(socket: u32) -> Descriptor {
    Request {
        socket,
        tag: 0,
        action: Action::Socket,
    }
    .encode()
}

/// One end of a connection between the processes.
pub trait Carrier {
    /// Sends all descriptors, and waits for space in the ring if necessary.
    fn send(&mut self, descriptors: &[Descriptor]);

    /// Waits for descriptors and appends them. Returns false when the other side is gone.
    fn receive(&mut self, descriptors: &mut Vec<Descriptor>) -> bool;
}

/// Receives descriptors, and sends back those that need an answer, until the other side is gone.
pub fn serve(mut carrier: impl Carrier) {
    let mut received = Vec::with_capacity(MOST);
    let to_be_answered = to_be_answered();
    while carrier.receive(&mut received) {
        for &descriptor in received.iter().filter(|it| **it == to_be_answered) {
            carrier.send(&[descriptor]);
        }
        received.clear();
    }
}

/// A link in shared memory, with its adaptive spinning.
pub struct Link<L> {
    link: L,
    spin: Spin,
    /// Advances while nothing arrives, because a link checks from time to time whether the other side runs.
    now: Time,
}

impl<L> Link<L> {
    pub fn new(link: L) -> Self {
        let spin = Spin::new(Duration::from_micros(50));
        Self {
            link,
            spin,
            now: Time::ZERO,
        }
    }
}

impl Carrier for Link<ShmHost> {
    fn send(&mut self, mut descriptors: &[Descriptor]) {
        loop {
            let taken = self
                .link
                .put(self.now, descriptors)
                .expect("the other side runs");
            descriptors = &descriptors[taken..];
            if descriptors.is_empty() {
                return;
            }
            wait(&mut self.link, &mut self.spin, None).expect("the system can wait");
        }
    }

    fn receive(&mut self, descriptors: &mut Vec<Descriptor>) -> bool {
        while self.link.get(self.now, descriptors).is_ok() {
            if !descriptors.is_empty() {
                return true;
            }
            self.now += Span::from_ms(1);
            wait(&mut self.link, &mut self.spin, None).expect("the system can wait");
        }
        false
    }
}

impl Carrier for Link<ShmAdapter> {
    fn send(&mut self, descriptors: &[Descriptor]) {
        let taken = self
            .link
            .put(self.now, descriptors)
            .expect("the other side runs");
        assert_eq!(
            taken,
            descriptors.len(),
            "the ring has space for the few answers"
        );
    }

    fn receive(&mut self, descriptors: &mut Vec<Descriptor>) -> bool {
        while self.link.get(self.now, MOST, descriptors).is_ok() {
            if !descriptors.is_empty() {
                return true;
            }
            self.now += Span::from_ms(1);
            wait(&mut self.link, &mut self.spin, None).expect("the system can wait");
        }
        false
    }
}

/// Sends descriptors as bytes through the kernel, with blocking reads and writes.
pub struct Bytes<R, W> {
    reader: R,
    writer: W,
    output: Box<[u8]>,
    input: Box<[u8]>,
    /// Number of received bytes in `input`, which are the beginning of a descriptor.
    there: usize,
}

impl<R: Read, W: Write> Bytes<R, W> {
    pub fn new(reader: R, writer: W) -> Self {
        Self {
            reader,
            writer,
            output: vec![0; MOST * BYTES].into(),
            input: vec![0; MOST * BYTES].into(),
            there: 0,
        }
    }
}

impl Bytes<UnixStream, UnixStream> {
    pub fn socket(stream: UnixStream) -> Self {
        let writer = stream.try_clone().expect("a descriptor");
        Self::new(stream, writer)
    }
}

impl Bytes<File, File> {
    pub fn pipe(reader: impl Into<File>, writer: impl Into<File>) -> Self {
        Self::new(reader.into(), writer.into())
    }
}

impl<R: Read, W: Write> Carrier for Bytes<R, W> {
    fn send(&mut self, descriptors: &[Descriptor]) {
        let bytes = &mut self.output[..descriptors.len() * BYTES];
        for (place, descriptor) in bytes.as_chunks_mut().0.iter_mut().zip(descriptors) {
            *place = descriptor.to_bytes();
        }
        let written = self.writer.write_all(bytes);
        written.expect("the other side runs");
    }

    fn receive(&mut self, descriptors: &mut Vec<Descriptor>) -> bool {
        while self.there < BYTES {
            match self.reader.read(&mut self.input[self.there..]) {
                Ok(len) if len > 0 => self.there += len,
                _ => return false,
            }
        }
        let (whole, rest) = self.input[..self.there].as_chunks();
        descriptors.extend(whole.iter().map(Descriptor::from_bytes));
        let rest = rest.len();
        self.input.copy_within(self.there - rest..self.there, 0);
        self.there = rest;
        true
    }
}

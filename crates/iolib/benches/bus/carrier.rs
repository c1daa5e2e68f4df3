//! Ways for descriptors from one process to another.

use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Request};
use baton_bus::link::{AdapterLink, HostLink};
use baton_iolib::{ShmAdapter, ShmHost, Spin, wait};
use baton_wire::{Span, Time};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The most descriptors that are sent or received at a time.
const MOST: usize = 128;
const BYTES: usize = Descriptor::BYTES as usize;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rings as deep as they are by default.
    SharedMemory,
    /// Rings that hold several of the longest batches, as the buffers of the others do.
    DeepRings,
    SocketPair,
    Pipe,
}

impl Kind {
    pub const ALL: [Self; 4] = [
        Self::SharedMemory,
        Self::DeepRings,
        Self::SocketPair,
        Self::Pipe,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "shared memory, rings of 128",
            Self::DeepRings => "shared memory, rings of 1024",
            Self::SocketPair => "socket pair",
            Self::Pipe => "pipe",
        }
    }
}

/// A descriptor that is only taken.
pub fn plain() -> Descriptor {
    request(0)
}

/// A descriptor that is answered by itself.
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

/// One side's end.
pub trait Carrier {
    /// Sends all of them, and waits for space in the ring.
    fn send(&mut self, descriptors: &[Descriptor]);

    /// Appends what has come, waiting for it; false when the other side is gone.
    fn receive(&mut self, descriptors: &mut Vec<Descriptor>) -> bool;
}

/// Takes everything, and answers what is to be answered, until the other side is gone.
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

/// A link, with the spinning that its side has learnt.
pub struct Link<L> {
    link: L,
    spin: Spin,
    /// Goes on while nothing comes: from time to time a link looks whether the other side lives.
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
                .expect("the other side lives");
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
            .expect("the other side lives");
        assert_eq!(taken, descriptors.len(), "few are answered");
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

/// Descriptors as bytes, through the kernel. Reads and writes block.
pub struct Bytes<R, W> {
    reader: R,
    writer: W,
    output: Box<[u8]>,
    input: Box<[u8]>,
    /// Bytes of `input` that are there: the beginning of a descriptor.
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
        let writer = stream.try_clone().expect("a file");
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
        written.expect("the other side lives");
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

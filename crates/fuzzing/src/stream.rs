//! A host and an adapter that read streams with arbitrary content.

use arbitrary::{Arbitrary, Unstructured};
use baton_bus::link::{AdapterLink, DmaId, HostLink, LinkError};
use baton_iolib::{Application, Geometry, StreamAdapter, StreamHost};
use baton_wire::Time;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

const GEOMETRY: Geometry = Geometry {
    ring_depth: 8,
    buffers: 4,
    buffer_bytes: 64,
    most_sends: 4,
};
const NOW: Time = Time::ZERO;

/// A part of the stream.
#[derive(Debug, Arbitrary)]
enum Piece {
    /// A message with a consistent length in its header.
    Message { kind: u8, len: u8, rest: Vec<u8> },
    /// A read that may be within bounds.
    Read { id: u8, address: u8, len: u8 },
    /// Arbitrary bytes.
    Bytes(Vec<u8>),
    /// No more data for now.
    Pause,
    /// The stream accepts this many more bytes.
    Room(u8),
}

/// A stream with predefined content.
#[derive(Debug, Default)]
struct Script {
    comes: VecDeque<u8>,
    over: bool,
    room: usize,
}

impl Read for Script {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.comes.is_empty() && !self.over {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.comes.read(bytes)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.room);
        self.room -= len;
        if len == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends arbitrary pieces of messages to a host or an adapter while it uses the stream. It must return values, report a violation, or
/// detect the end of the stream.
pub fn stream(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(to_host) = bool::arbitrary(&mut input) else {
        return;
    };
    let pieces = std::iter::from_fn(|| {
        let more = !input.is_empty();
        more.then(|| Piece::arbitrary(&mut input).ok()).flatten()
    });
    if to_host {
        host(pieces);
    } else {
        adapter(pieces);
    }
}

/// Adds a piece to the content; returns true if the side should read now.
fn add(script: &mut Script, piece: Piece) -> bool {
    match piece {
        Piece::Message { kind, len, rest } => {
            script.comes.extend([kind % 6, 0, 0, 0, len, 0, 0, 0]);
            let rest = rest.into_iter().chain(std::iter::repeat(0));
            script.comes.extend(rest.take(len.into()));
        }
        Piece::Read { id, address, len } => {
            script.comes.extend([2, 0, 0, 0, 16, 0, 0, 0]);
            script.comes.extend([id, 0, 0, 0, len % 65, 0, 0, 0]);
            script.comes.extend([address, 0, 0, 0, 0, 0, 0, 0]);
        }
        Piece::Bytes(bytes) => script.comes.extend(bytes),
        Piece::Pause => return true,
        Piece::Room(room) => script.room += usize::from(room),
    }
    false
}

fn host(pieces: impl Iterator<Item = Piece>) {
    let mut host = StreamHost::over(Script::default(), GEOMETRY);
    let mut responses = Vec::new();
    for piece in pieces {
        if !add(host.stream_mut(), piece) {
            continue;
        }
        if host.get(NOW, &mut responses).is_err() {
            return;
        }
        let _ = host.place(Bytes::from_static(b"data"));
        if let Some(response) = responses.first().copied() {
            let _ = host.put(NOW, &[response]);
        }
        responses.clear();
    }
    host.stream_mut().over = true;
    assert!(
        ends(|| host.get(NOW, &mut responses)),
        "the end of the stream is detected"
    );
}

fn adapter(pieces: impl Iterator<Item = Piece>) {
    let application = Application::default();
    let mut adapter = StreamAdapter::over(Script::default(), GEOMETRY, application);
    let mut requests = Vec::new();
    for (number, piece) in pieces.enumerate() {
        if !add(adapter.stream_mut(), piece) {
            continue;
        }
        let did = adapter
            .get(NOW, number % 9, &mut requests)
            .and_then(|()| adapter.read(NOW, DmaId(number as u32), 64, number as u32 % 65))
            .and_then(|()| adapter.write(NOW, DmaId(0), 0, Bytes::from_static(b"data")))
            .and_then(|()| adapter.poll_dma(NOW));
        if did.is_err() {
            return;
        }
    }
    adapter.stream_mut().over = true;
    assert!(
        ends(|| adapter.get(NOW, 9, &mut requests)),
        "the end of the stream is detected"
    );
}

/// Returns whether all remaining data is read eventually and the link then reports an error.
fn ends(mut get: impl FnMut() -> Result<(), LinkError>) -> bool {
    (0..10_000).any(|_| get().is_err())
}

//! Endace's Extensible Record Format (ERF), for records that contain IP. Each record has a time, a type, lengths, and the frame.

use super::link::Link;
use super::{Captured, Packets, Problem};
use std::io::{self, BufRead, ErrorKind};

/// Size of a record's header.
const HEADER_BYTES: usize = 16;
/// Size of an extension header; its first byte indicates whether another one follows.
const EXTENSION_BYTES: usize = 8;
/// Flag for a following extension header.
const MORE: u8 = 0x80;

/// Record types.
const HDLC_POS: u8 = 1;
const ETHERNET: u8 = 2;
const ATM: u8 = 3;
const AAL5: u8 = 4;
const MOST_TYPES: u8 = 48;
const PAD: u8 = 48;
const IPV4: u8 = 22;
const IPV6: u8 = 23;

/// A record's header.
struct Header {
    time_us: u64,
    kind: u8,
    has_extensions: bool,
    /// Size of the whole record.
    record_bytes: usize,
    /// Size of the frame on the wire.
    wire_bytes: usize,
}

impl Header {
    fn of(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [
            t0,
            t1,
            t2,
            t3,
            t4,
            t5,
            t6,
            t7,
            kind,
            _,
            r0,
            r1,
            _,
            _,
            w0,
            w1,
        ] = *bytes;
        // 32 bits of seconds and 32 bits of fraction; only this field is little-endian.
        let time = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let fraction_us = ((time & 0xffff_ffff) * 1_000_000) >> 32;
        Self {
            time_us: (time >> 32) * 1_000_000 + fraction_us,
            kind: kind & !MORE,
            has_extensions: kind & MORE != 0,
            record_bytes: u16::from_be_bytes([r0, r1]).into(),
            wire_bytes: u16::from_be_bytes([w0, w1]).into(),
        }
    }

    const fn makes_sense(&self) -> bool {
        self.kind > 0 && self.kind <= MOST_TYPES && self.record_bytes >= HEADER_BYTES
    }
}

/// Returns whether a file may begin like this: with a valid record, followed by another one or by the end of the file.
pub(super) fn is_start(start: &[u8]) -> bool {
    let Some(bytes) = start.first_chunk() else {
        return false;
    };
    let first = Header::of(bytes);
    let second = start
        .get(first.record_bytes..)
        .and_then(|rest| rest.first_chunk())
        .map(Header::of);
    let follows = |second: Header| {
        second.makes_sense() && second.time_us.abs_diff(first.time_us) < 86_400_000_000
    };
    // Text, with lines of the same length, may look like valid records, except that records contain bytes that are not text.
    let is_text = bytes
        .iter()
        .all(|c| c.is_ascii_graphic() || c.is_ascii_whitespace());
    !is_text
        && first.makes_sense()
        && first.time_us > 0
        && second.map_or(start.len() == first.record_bytes, follows)
}

pub(super) struct Erf<R> {
    reader: R,
    record: Vec<u8>,
}

impl<R: BufRead> Erf<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            record: Vec::new(),
        }
    }

    /// Reads the next header; returns `None` at the end.
    fn header(&mut self) -> Result<Option<Header>, Problem> {
        if self.reader.fill_buf().map_err(Problem::Io)?.is_empty() {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        self.reader.read_exact(&mut header).map_err(Problem::Io)?;
        let header = Header::of(&header);
        if !header.makes_sense() {
            let Header {
                kind, record_bytes, ..
            } = header;
            return Err(Problem::Damaged(format!(
                "a record of type {kind} and {record_bytes} bytes; expected types 1 to {MOST_TYPES} and at least {HEADER_BYTES} bytes"
            )));
        }
        Ok(Some(header))
    }
}

impl<R: BufRead> Packets for Erf<R> {
    fn next(&mut self) -> Result<Option<Captured<'_>>, Problem> {
        let header = loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            self.record.resize(header.record_bytes - HEADER_BYTES, 0);
            self.reader
                .read_exact(&mut self.record)
                .map_err(Problem::Io)?;
            if header.kind != PAD {
                break header;
            }
        };
        let cut = || Problem::Io(io::Error::from(ErrorKind::InvalidData));
        let mut rest = self.record.as_slice();
        let mut more = header.has_extensions;
        while more {
            more = rest.first().is_some_and(|first| first & MORE != 0);
            rest = rest.get(EXTENSION_BYTES..).ok_or_else(cut)?;
        }
        // Number of bytes before the frame, and bytes that count towards the wire length but are not stored: an ATM cell's checksum.
        let (link, before, not_stored) = match header.kind {
            HDLC_POS => (Link::Hdlc, 0, 0),
            ETHERNET => (Link::Ethernet, 2, 0),
            ATM => (Link::LlcSnap, 4, 1 + 4),
            AAL5 => (Link::LlcSnap, 4, 4),
            IPV4 | IPV6 => (Link::Ip, 0, 0),
            other => (Link::UnreadErf(other), 0, 0),
        };
        let stored = rest.get(before..).ok_or_else(cut)?;
        let frame_bytes = header.wire_bytes.saturating_sub(not_stored);
        // Records are padded.
        let data = &stored[..stored.len().min(frame_bytes)];
        let packet = Captured::new(header.time_us, link, data, frame_bytes, 0);
        Ok(Some(Captured {
            // A record contains only one cell of an ATM packet, no matter how long the packet is.
            truncated: packet.truncated || header.kind == ATM,
            ..packet
        }))
    }
}

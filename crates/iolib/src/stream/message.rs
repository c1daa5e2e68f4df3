//! The format of the messages.

use crate::handshake::Geometry;
use baton_bus::Descriptor;
use baton_bus::descriptor::{Malformed, entries};
use baton_bus::link::Violation;

/// Length of the header, which precedes the rest of each message, bytes.
pub(super) const HEADER_BYTES: usize = 8;
/// Length of a reply before its data, bytes.
pub(super) const REPLY_HEAD_BYTES: usize = 4;
/// Length of a write before its data, bytes.
pub(super) const WRITE_HEAD_BYTES: usize = 8;
const READ_BYTES: usize = 16;

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Descriptors = 1,
    Read = 2,
    Reply = 3,
    Write = 4,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    /// Length of the rest, bytes.
    pub len: usize,
}

/// Returns the maximum length of a message, bytes.
pub(super) fn most_bytes(geometry: &Geometry) -> usize {
    let descriptors = geometry.ring_depth as usize * Descriptor::BYTES as usize;
    let data = WRITE_HEAD_BYTES + geometry.buffer_bytes as usize;
    HEADER_BYTES + descriptors.max(data)
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [a, b, c, d] = (self.len as u32).to_le_bytes();
        [self.kind as u8, 0, 0, 0, a, b, c, d]
    }

    /// Decodes a header. Refuses a length that a message of its kind cannot have, before waiting for the rest.
    pub fn decode(bytes: [u8; HEADER_BYTES], geometry: &Geometry) -> Result<Self, Violation> {
        let [kind, x, y, z, a, b, c, d] = bytes;
        let len = u32::from_le_bytes([a, b, c, d]);
        let rest = len as usize;
        let data = |head: usize| (head..=head + geometry.buffer_bytes as usize).contains(&rest);
        let descriptor = Descriptor::BYTES as usize;
        let (kind, fits) = match kind {
            1 => (
                Kind::Descriptors,
                rest > 0
                    && rest.is_multiple_of(descriptor)
                    && rest / descriptor <= geometry.ring_depth as usize,
            ),
            2 => (Kind::Read, rest == READ_BYTES),
            3 => (Kind::Reply, data(REPLY_HEAD_BYTES)),
            4 => (Kind::Write, data(WRITE_HEAD_BYTES)),
            _ => return Err(Violation::Message(kind)),
        };
        if [x, y, z] != [0; 3] {
            return Err(Violation::Message(x | y | z));
        }
        if fits {
            Ok(Self { kind, len: rest })
        } else {
            Err(Violation::Length(len))
        }
    }
}

/// A request for the host to send data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadRequest {
    pub id: u32,
    pub len: u32,
    pub address: u64,
}

impl ReadRequest {
    pub fn to_bytes(self) -> [u8; READ_BYTES] {
        let mut bytes = [0; READ_BYTES];
        bytes[..4].copy_from_slice(&self.id.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..].copy_from_slice(&self.address.to_le_bytes());
        bytes
    }

    /// Decodes the rest of a message, whose length was checked.
    pub fn decode(rest: &[u8]) -> Self {
        Self {
            id: number(rest),
            len: number(&rest[4..]),
            address: long_number(&rest[8..]),
        }
    }
}

/// Returns the number in the first four bytes.
pub(super) fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("lengths are checked"))
}

/// Returns the number in the first eight bytes.
pub(super) fn long_number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("lengths are checked"))
}

/// Appends the descriptors of a message, or refuses the message if they are not whole entries.
pub(super) fn read_descriptors(
    rest: &[u8],
    descriptors: &mut Vec<Descriptor>,
) -> Result<(), Malformed> {
    let before = descriptors.len();
    let (chunks, []) = rest.as_chunks() else {
        unreachable!("lengths are checked")
    };
    descriptors.extend(chunks.iter().map(Descriptor::from_bytes));
    entries(&descriptors[before..]).try_for_each(|entry| entry.map(drop))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GEOMETRY: Geometry = Geometry {
        ring_depth: 8,
        buffers: 4,
        buffer_bytes: 64,
        most_sends: 4,
    };

    #[test]
    fn headers_round_trip_and_invalid_ones_are_refused_with_a_reason() {
        for (kind, lens) in [
            (Kind::Descriptors, [32, 256]),
            (Kind::Read, [16, 16]),
            (Kind::Reply, [4, 68]),
            (Kind::Write, [8, 72]),
        ] {
            for len in lens {
                let header = Header { kind, len };
                assert_eq!(Header::decode(header.to_bytes(), &GEOMETRY), Ok(header));
                assert!(HEADER_BYTES + len <= most_bytes(&GEOMETRY));
            }
        }
        let refused = |kind, len: u32| {
            let [a, b, c, d] = len.to_le_bytes();
            Header::decode([kind, 0, 0, 0, a, b, c, d], &GEOMETRY).expect_err("refused")
        };
        assert_eq!(refused(5, 16), Violation::Message(5));
        for (kind, len) in [
            (1, 0),
            (1, 33),
            (1, 288),
            (2, 15),
            (3, 3),
            (3, 69),
            (4, 7),
            (4, u32::MAX),
        ] {
            assert_eq!(refused(kind, len), Violation::Length(len));
        }
    }

    proptest! {
        #[test]
        fn reads_round_trip(id: u32, len: u32, address: u64) {
            let read = ReadRequest { id, len, address };
            prop_assert_eq!(ReadRequest::decode(&read.to_bytes()), read);
        }
    }
}

//! Data on the link and in the server's TCP: ranges of content, bytes of a connection's state, packets.

use baton_apps::symbolic::{self, Kind};
use baton_bus::link::Inline;
use baton_bus::{BytesByCategory, Category, Direction};
use baton_tcp::Segment;
use baton_wire::{Payload, Pieces, Symbolic, frame_len};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::rc::Rc;

/// Content of a buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum LinkData {
    /// Payload of connections, whose bytes are not represented. The host's processor copies them.
    Content(Symbolic),
    /// Payload that is content of a file with this revision and is sent from its pages. The bytes are only in these pages, wherever they
    /// are referred to.
    File(Symbolic, u32),
    /// Payload as it is in the adapter's data cache, each block separately.
    Cached(Symbolic),
    /// Bytes of a connection's state.
    State(Bytes),
    /// A packet of the host's own stack, or the head of a packet that is sent in parts; never split.
    #[serde(skip)]
    Packet(Packet),
    /// A part of a packet, at its place in memory.
    #[serde(skip)]
    Part(Symbolic),
}

/// A packet, shared between a buffer and the data read from the buffer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Packet {
    segment: Rc<Segment<LinkData>>,
    /// Bytes of headers and payload, cached because every step of the way needs them.
    len: u32,
    /// Bytes of headers.
    header_len: u32,
}

impl Packet {
    fn new(segment: Segment<LinkData>) -> Self {
        let header_len = segment.header_len();
        Self {
            len: (header_len + segment.payload_len()) as u32,
            header_len: header_len as u32,
            segment: Rc::new(segment),
        }
    }

    /// Returns the segment.
    pub(super) fn into_segment(self) -> Segment<LinkData> {
        Rc::unwrap_or_clone(self.segment)
    }

    /// Returns [`Segment::frame_len`] of the segment.
    pub(super) fn frame_len(&self) -> usize {
        frame_len(self.len as usize)
    }
}

impl Deref for Packet {
    type Target = Segment<LinkData>;

    fn deref(&self) -> &Self::Target {
        &self.segment
    }
}

impl LinkData {
    /// Creates the data for a packet.
    pub(super) fn packet(segment: Segment<Self>) -> Self {
        Self::Packet(Packet::new(segment))
    }

    /// Returns whether this is a packet or a part of a packet.
    pub(super) fn is_packet(&self) -> bool {
        matches!(self, Self::Packet(_) | Self::Part(_))
    }

    /// Returns whether this is a part of a packet, after its head.
    pub(super) fn is_part(&self) -> bool {
        matches!(self, Self::Part(_))
    }

    /// Returns the packet, if this is a packet.
    pub(super) fn into_packet(self) -> Option<Segment<Self>> {
        match self {
            Self::Packet(packet) => Some(packet.into_segment()),
            _ => None,
        }
    }

    /// Returns the content, if this is content.
    pub(super) fn content(&self) -> Option<Symbolic> {
        match self {
            Self::Content(content)
            | Self::File(content, _)
            | Self::Cached(content)
            | Self::Part(content) => Some(*content),
            Self::State(_) | Self::Packet(_) => None,
        }
    }

    /// Returns the bytes by category.
    pub(super) fn categories(&self, direction: Direction) -> BytesByCategory {
        match self {
            Self::Content(content)
            | Self::File(content, _)
            | Self::Cached(content)
            | Self::Part(content) => BytesByCategory::of(category(content), content.len.into()),
            Self::State(bytes) => {
                let category = match direction {
                    Direction::ToNic => Category::Descriptor,
                    Direction::ToHost => Category::Event,
                };
                BytesByCategory::of(category, bytes.len() as u64)
            }
            Self::Packet(packet) => {
                let headers = packet.header_len.into();
                let mut bytes = BytesByCategory::of(Category::ProtocolHeader, headers);
                for content in packet.payload.iter().filter_map(Self::content) {
                    bytes.add(category(&content), content.len.into());
                }
                bytes
            }
        }
    }
}

fn category(content: &Symbolic) -> Category {
    if symbolic::kind(content).is_content() {
        Category::Content
    } else {
        debug_assert!(matches!(
            symbolic::kind(content),
            Kind::Request | Kind::Head
        ));
        Category::HttpHeader
    }
}

/// Converts a segment from the wire for the server's TCP.
pub(super) fn from_wire(segment: &Segment<Symbolic>) -> Packet {
    let payload = segment.payload.iter().copied().map(LinkData::Content);
    Packet::new(with_payload(segment, payload.collect()))
}

/// Converts a segment of the server's TCP for the wire.
pub(super) fn to_wire(segment: &Segment<LinkData>) -> Segment<Symbolic> {
    let payload = segment.payload.iter().filter_map(LinkData::content);
    with_payload(segment, payload.collect())
}

fn with_payload<P, Q>(segment: &Segment<P>, payload: Pieces<Q>) -> Segment<Q> {
    let &Segment {
        src,
        dst,
        ecn,
        header,
        ..
    } = segment;
    Segment {
        src,
        dst,
        ecn,
        header,
        payload,
    }
}

impl Payload for LinkData {
    fn len(&self) -> usize {
        match self {
            Self::Content(content)
            | Self::File(content, _)
            | Self::Cached(content)
            | Self::Part(content) => Payload::len(content),
            Self::State(bytes) => bytes.len(),
            Self::Packet(packet) => packet.len as usize,
        }
    }

    fn slice(&self, start: usize, len: usize) -> Self {
        match self {
            Self::Content(content) => Self::Content(content.slice(start, len)),
            Self::File(content, revision) => Self::File(content.slice(start, len), *revision),
            Self::Cached(content) => Self::Cached(content.slice(start, len)),
            Self::State(bytes) => Self::State(Payload::slice(bytes, start, len)),
            Self::Part(content) => Self::Part(content.slice(start, len)),
            Self::Packet(_) => {
                assert_eq!((start, len), (0, self.len()), "packets are not split");
                self.clone()
            }
        }
    }

    fn try_append(&mut self, next: &Self) -> bool {
        match (self, next) {
            (Self::Content(content), Self::Content(next)) => content.try_append(next),
            (Self::File(content, revision), Self::File(next, of_next)) => {
                revision == of_next && content.try_append(next)
            }
            _ => false,
        }
    }
}

impl Inline for LinkData {
    const IS_BYTES: bool = false;

    fn followed_by(&self, next: &Self) -> Option<Self> {
        let mut both = self.clone();
        both.try_append(next).then_some(both)
    }

    fn to_inline(&self, room: &mut [u8]) {
        match self {
            Self::Content(content)
            | Self::File(content, _)
            | Self::Cached(content)
            | Self::Part(content) => {
                content.to_inline(room);
            }
            Self::State(_) | Self::Packet(_) => {
                unreachable!("states and packets are in buffers, not in descriptors")
            }
        }
    }

    fn from_inline(room: &[u8], len: usize) -> Option<Self> {
        Symbolic::from_inline(room, len).map(Self::Content)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::State(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        Some(Self::State(bytes.into()))
    }

    fn stored(self) -> Self {
        match self {
            Self::Content(content) | Self::File(content, _) => Self::Cached(content),
            other => other,
        }
    }
}

//! Frames with segments that begin like the last one: in a conversation nearly all do, and what held for the headers below TCP
//! of the last one holds for theirs.

use super::{Interface, Pair, Taken};
use crate::stats::Refusal;
use baton_tcp::Segment;
use baton_wire::{Checksum, Ecn};
use bytes::Bytes;
use etherparse::{Ethernet2Header, IpNumber, Ipv4Header};

/// Bytes of an Ethernet header and an IPv4 header without options.
const LEN: usize = ETHERNET_LEN + Ipv4Header::MIN_LEN;
const ETHERNET_LEN: usize = Ethernet2Header::LEN;

/// Where fields stand (RFC 791 3.1), the Ethernet header counted.
const TYPE_OF_SERVICE_AT: usize = ETHERNET_LEN + 1;
const LENGTH_AT: usize = ETHERNET_LEN + 2;
const FRAGMENT_AT: usize = ETHERNET_LEN + 6;
const PROTOCOL_AT: usize = ETHERNET_LEN + 9;
const ADDRESSES_AT: usize = ETHERNET_LEN + 12;

/// The more-fragments flag and the fragment's offset: both are zero in a whole packet.
const FRAGMENT_MASK: u16 = 0x3fff;

/// Headers below TCP of a frame that was taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; LEN],
    pair: Pair,
}

impl Head {
    /// Of a frame whose IPv4 packet starts at `start`; `None` unless just an Ethernet header lies before it, and unless the
    /// IPv4 header has no options.
    pub(super) fn of(frame: &[u8], start: usize, pair: Pair) -> Option<Self> {
        let bytes = *frame.first_chunk()?;
        let plain = Ipv4Header::MIN_LEN as u8 / 4 | 4 << 4;
        (start == ETHERNET_LEN && frame[start] == plain).then_some(Self { bytes, pair })
    }

    /// The same hosts speak of the same to each other: Ethernet header, version, header length, protocol and addresses are
    /// equal, and it is no fragment.
    #[inline]
    fn is_like(&self, other: &[u8; LEN]) -> bool {
        let known = &self.bytes;
        known[..TYPE_OF_SERVICE_AT] == other[..TYPE_OF_SERVICE_AT]
            && known[ADDRESSES_AT..] == other[ADDRESSES_AT..]
            && other[PROTOCOL_AT] == IpNumber::TCP.0
            && number(other, FRAGMENT_AT) & FRAGMENT_MASK == 0
    }
}

#[inline]
fn number(head: &[u8; LEN], at: usize) -> u16 {
    u16::from_be_bytes([head[at], head[at + 1]])
}

impl Interface {
    /// Takes in a frame that begins like the last one; `None` when it does not, or is odd in any way.
    #[inline]
    pub(super) fn take_similar(
        &mut self,
        frame: &[u8],
        segment: &mut Segment<Bytes>,
    ) -> Option<Result<Taken, Refusal>> {
        let known = self.known_head.as_ref()?;
        let head = frame.first_chunk().filter(|head| known.is_like(head))?;
        let end = ETHERNET_LEN + usize::from(number(head, LENGTH_AT));
        if end < LEN || end > frame.len() {
            return None;
        }
        let ip: &[u8; Ipv4Header::MIN_LEN] = head.last_chunk()?;
        if self.config.verify_checksums && !Checksum::new().add_words(ip).is_right() {
            return None;
        }
        let ecn = Ecn::of_traffic_class(head[TYPE_OF_SERVICE_AT]);
        let pair = known.pair;
        Some(self.take_tcp(&pair, ecn, frame, LEN..end, segment))
    }
}

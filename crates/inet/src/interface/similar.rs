//! Fast path for segments whose frames begin like the last one, as nearly all frames of a connection do: the checks of the headers
//! below TCP need not be repeated.

use super::{Interface, Pair, Taken};
use crate::stats::Refusal;
use baton_tcp::Segment;
use baton_wire::{Checksum, Ecn};
use bytes::Bytes;
use etherparse::{Ethernet2Header, IpNumber, Ipv4Header};

/// Bytes of an Ethernet header and an IPv4 header without options.
pub(super) const LEN: usize = ETHERNET_LEN + Ipv4Header::MIN_LEN;
pub(super) const ETHERNET_LEN: usize = Ethernet2Header::LEN;

/// Positions of fields (RFC 791 3.1), including the Ethernet header.
pub(super) const TYPE_OF_SERVICE_AT: usize = ETHERNET_LEN + 1;
pub(super) const LENGTH_AT: usize = ETHERNET_LEN + 2;
const FRAGMENT_AT: usize = ETHERNET_LEN + 6;
const PROTOCOL_AT: usize = ETHERNET_LEN + 9;
const ADDRESSES_AT: usize = ETHERNET_LEN + 12;

/// The more-fragments flag and the fragment's offset: both are zero in a whole packet.
const FRAGMENT_MASK: u16 = 0x3fff;

/// Headers below TCP of a frame that was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; LEN],
    pub(super) pair: Pair,
}

impl Head {
    /// The headers of a frame whose IPv4 packet starts at `start`; `None` if there is more than an Ethernet header before it, or if
    /// the IPv4 header has options.
    pub(super) fn of(frame: &[u8], start: usize, pair: Pair) -> Option<Self> {
        let bytes = *frame.first_chunk()?;
        let plain = (4 << 4) | (Ipv4Header::MIN_LEN as u8 / 4);
        (start == ETHERNET_LEN && frame[start] == plain).then_some(Self { bytes, pair })
    }

    /// Reports whether the Ethernet header, version, header length, protocol and addresses are equal and the packet is no
    /// fragment.
    #[inline]
    pub(super) fn is_like(&self, other: &[u8; LEN]) -> bool {
        let known = &self.bytes;
        known[..TYPE_OF_SERVICE_AT] == other[..TYPE_OF_SERVICE_AT]
            && known[ADDRESSES_AT..] == other[ADDRESSES_AT..]
            && other[PROTOCOL_AT] == IpNumber::TCP.0
            && number(other, FRAGMENT_AT) & FRAGMENT_MASK == 0
    }
}

#[inline]
pub(super) fn number(head: &[u8; LEN], at: usize) -> u16 {
    u16::from_be_bytes([head[at], head[at + 1]])
}

impl Interface {
    /// Processes a frame that begins like the last one; `None` if it does not, or is unusual in any way.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cidr, Input, InterfaceConfig};
    use baton_wire::{Endpoint, Flags, Header, Link, Packet, SeqNr, Time, encode_frame};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn addr(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let packet = Packet {
            src: Endpoint::new(addr(2), 80),
            dst: Endpoint::new(addr(1), 1234),
            ecn: Ecn::NotCapable,
            header: Header {
                seq: SeqNr(7),
                flags: Flags::ACK,
                ..Header::default()
            },
        };
        let link = Link {
            src: [2, 0, 0, 0, 0, 2],
            dst: MAC,
        };
        let mut out = Vec::new();
        encode_frame(link, &packet, payload, &mut out).expect("it fits");
        out
    }

    /// An interface that has received a segment.
    fn interface() -> Interface {
        let network = Cidr::new(addr(1), 24).expect("a network");
        let config = InterfaceConfig::new(MAC, vec![network]);
        let mut interface = Interface::new(config).expect("right parameters");
        let first = interface.handle_frame(Time::ZERO, frame(b"first").into());
        assert!(matches!(first, Input::Segment(_)) && interface.known_head.is_some());
        interface
    }

    #[test]
    fn the_second_segment_of_a_flow_is_predicted() {
        let mut interface = interface();
        let mut segment = crate::interface::empty_segment();
        let taken = interface.take_similar(&frame(b"more"), &mut segment);
        assert!(matches!(taken, Some(Ok(Taken::Segment { .. }))));
        assert_eq!(segment.header.seq, SeqNr(7));
    }

    proptest! {
        /// One byte is changed, and the frame may be cut or padded.
        #[test]
        fn unusual_frames_are_parsed_without_prediction(
            payload in proptest::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            len in 0..200usize,
            cuts in any::<bool>(),
        ) {
            let mut frame = frame(&payload);
            let at = at.index(frame.len());
            frame[at] = byte;
            if cuts {
                frame.resize(len, 0);
            }
            let mut knows = interface();
            let mut general = knows.clone();
            (general.known_head, general.known_pair) = (None, None);
            let frame = Bytes::from(frame);
            prop_assert_eq!(
                knows.handle_frame(Time::ZERO, frame.clone()),
                general.handle_frame(Time::ZERO, frame)
            );
            prop_assert_eq!(knows.stats, general.stats);
        }
    }
}

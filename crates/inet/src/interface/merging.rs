//! Merging of consecutive segments that differ only in their numbers, as in Linux's generic receive offload. Everything that TCP
//! would look at is compared; segments that differ, or are unusual in any way, are not merged.

use super::Interface;
use super::similar::{ETHERNET_LEN, LEN, number};
use baton_tcp::Segment;
use baton_wire::{Checksum, Ecn, Flags, Timestamps};
use bytes::Bytes;
use etherparse::Ipv4Header;
use etherparse::tcp_option::{KIND_NOOP, KIND_TIMESTAMP, LEN_TIMESTAMP};
use std::ops::Range;

/// Maximum number of segments that are merged: as many as a port returns at a time.
const MOST_MERGED: usize = 64;

/// Bytes of a TCP header without options, and with timestamps only, which nearly all segments have.
const PLAIN_LEN: usize = 20;
const TIMED_LEN: usize = PLAIN_LEN + 12;

/// Two no-operations and the kind and length of timestamps.
const ALIGNED_TIMESTAMPS: u32 =
    u32::from_be_bytes([KIND_NOOP, KIND_NOOP, KIND_TIMESTAMP, LEN_TIMESTAMP]);

/// What the next segment of a run must begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The sequence number that it must have.
    next_seq: u32,
    ports: u32,
    ack: u32,
    /// Data offset, flags and window.
    middle: u32,
    timestamps: Option<Timestamps>,
    ecn: Ecn,
    /// Bytes of data of the first segment, and how many segments may still follow.
    most_len: usize,
    room: usize,
}

impl Run {
    /// Returns what may follow `first`, a segment that was just received. `None` if it has no data, a flag other than ACK, or an
    /// option other than timestamps.
    pub(crate) fn after(first: &Segment<Bytes>) -> Option<Self> {
        let header = &first.header;
        let [data] = &first.payload[..] else {
            return None;
        };
        let options = &header.options;
        let plain = header.flags == Flags::ACK
            && options.sack.is_empty()
            && options.mss.is_none()
            && options.window_scale.is_none()
            && !options.sack_permitted;
        let header_len = match options.timestamps {
            Some(_) => TIMED_LEN,
            None => PLAIN_LEN,
        };
        let offset_and_flags = ((header_len as u32 / 4) << 12) | u32::from(Flags::ACK.bits());
        plain.then(|| Self {
            next_seq: header.seq.0.wrapping_add(data.len() as u32),
            ports: (u32::from(first.src.port) << 16) | u32::from(first.dst.port),
            ack: header.ack.0,
            middle: (offset_and_flags << 16) | u32::from(header.window),
            timestamps: options.timestamps,
            ecn: first.ecn,
            most_len: data.len(),
            room: MOST_MERGED - 1,
        })
    }

    /// Bytes of the TCP header.
    fn header_len(&self) -> usize {
        match self.timestamps {
            Some(_) => TIMED_LEN,
            None => PLAIN_LEN,
        }
    }

    /// Compares a TCP header with the expected one. If it matches, returns whether it carries PSH.
    fn matches(&self, words: &[[u8; 4]]) -> Option<bool> {
        const PSH: u32 = (Flags::PSH.bits() as u32) << 16;
        let word = |at: usize| u32::from_be_bytes(words[at]);
        let fixed = word(0) == self.ports
            && word(1) == self.next_seq
            && word(2) == self.ack
            && word(3) & !PSH == self.middle;
        let same = fixed
            && self.timestamps.is_none_or(|it| {
                (word(5), word(6), word(7)) == (ALIGNED_TIMESTAMPS, it.value, it.echo)
            });
        same.then(|| word(3) & PSH != 0)
    }
}

impl Interface {
    /// Accepts a frame that continues a run, and counts it. Returns the range of its data, after checking the frame's length, headers
    /// and checksums.
    #[inline]
    pub(crate) fn take_next(
        &mut self,
        run: &mut Option<Run>,
        frame: &[u8],
        segment: &mut Segment<Bytes>,
    ) -> Option<Range<usize>> {
        let run = run.as_mut()?;
        let known = self.known_head.as_ref()?;
        let head = frame.first_chunk().filter(|head| known.is_like(head))?;
        let (start, end) = (
            LEN + run.header_len(),
            ETHERNET_LEN + usize::from(number(head, super::similar::LENGTH_AT)),
        );
        let data_len = end.checked_sub(start).filter(|&len| len > 0)?;
        if run.room == 0 || data_len > run.most_len || end > frame.len() {
            return None;
        }
        let ecn = Ecn::of_traffic_class(head[super::similar::TYPE_OF_SERVICE_AT]);
        let pushes = run.matches(frame[LEN..start].as_chunks().0)?;
        if ecn != run.ecn {
            return None;
        }
        if self.config.verify_checksums {
            let ip: &[u8; Ipv4Header::MIN_LEN] = head.last_chunk()?;
            let carried = &frame[LEN..end];
            let sum = known.pair.pseudo_header.add_u16(carried.len() as u16);
            let right =
                Checksum::new().add_words(ip).is_right() && sum.add_bytes(carried).is_right();
            if !right {
                return None;
            }
        }
        if pushes {
            segment.header.flags |= Flags::PSH;
        }
        // PSH ends a run, and so does a segment that is not full.
        run.room = match pushes || data_len < run.most_len {
            true => 0,
            false => run.room - 1,
        };
        run.next_seq = run.next_seq.wrapping_add(data_len as u32);
        self.stats.frames_received += 1;
        self.stats.bytes_received += frame.len() as u64;
        self.stats.segments_received += 1;
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cidr, InterfaceConfig};
    use baton_wire::{Endpoint, Header, Link, Packet, SeqNr, Time, encode_frame};
    use std::net::{IpAddr, Ipv4Addr};

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn addr(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn frame(seq: u32, flags: Flags, len: usize) -> Bytes {
        let packet = Packet {
            src: Endpoint::new(addr(2), 80),
            dst: Endpoint::new(addr(1), 1234),
            ecn: Ecn::NotCapable,
            header: Header {
                seq: SeqNr(seq),
                ack: SeqNr(9),
                flags,
                window: 100,
                ..Header::default()
            },
        };
        let link = Link {
            src: [2, 0, 0, 0, 0, 2],
            dst: MAC,
        };
        let mut out = Vec::new();
        encode_frame(link, &packet, &vec![7; len], &mut out).expect("it fits");
        out.into()
    }

    /// Returns how many of the frames are merged with the first.
    fn merged(frames: &[(u32, Flags, usize)]) -> usize {
        let network = Cidr::new(addr(1), 24).expect("a network");
        let config = InterfaceConfig::new(MAC, vec![network]);
        let mut interface = Interface::new(config).expect("right parameters");
        let mut frames = frames
            .iter()
            .map(|&(seq, flags, len)| frame(seq, flags, len));
        let mut segment = crate::interface::empty_segment();
        let first = frames.next().expect("there is one");
        interface.receive(Time::ZERO, first, &mut segment);
        let mut run = Run::after(&segment);
        let next = |frame: Bytes| interface.take_next(&mut run, &frame, &mut segment);
        frames.map_while(next).count()
    }

    #[test]
    fn a_run_has_full_segments_except_for_its_last() {
        const ACK: Flags = Flags::ACK;
        let push = ACK | Flags::PSH;
        assert_eq!(merged(&[(0, ACK, 9), (9, ACK, 9), (18, ACK, 9)]), 2);
        assert_eq!(merged(&[(0, ACK, 9), (9, ACK, 5), (14, ACK, 5)]), 1);
        assert_eq!(merged(&[(0, ACK, 9), (9, push, 9), (18, ACK, 9)]), 1);
        assert_eq!(merged(&[(0, push, 9), (9, ACK, 9)]), 0);
        assert_eq!(merged(&[(0, ACK, 5), (5, ACK, 9)]), 0);
        assert_eq!(merged(&[(0, ACK, 9), (10, ACK, 9)]), 0);
        for odd in [Flags::FIN, Flags::RST, Flags::SYN, Flags::URG, Flags::ECE] {
            assert_eq!(merged(&[(0, ACK, 9), (9, ACK | odd, 9)]), 0, "{odd:?}");
            assert_eq!(merged(&[(0, ACK | odd, 9), (9, ACK | odd, 9)]), 0);
        }
        // Only data is merged: acknowledgments are counted one by one.
        assert_eq!(merged(&[(0, ACK, 0), (0, ACK, 0)]), 0);
        let long: Vec<_> = (0..100).map(|number| (number, ACK, 1)).collect();
        assert_eq!(merged(&long), MOST_MERGED - 1);
    }
}

//! Stamps that identify a test's frames: the first 18 bytes of their data.
//!
//! | bytes | field |
//! |---|---|
//! | 0-1 | `ba70` |
//! | 2 | stream: 0 from the NIC under test, 1 to it |
//! | 3 | trial, modulo 256, so that late frames of earlier trials are not counted |
//! | 4-9 | sequence number, from 0 |
//! | 10-17 | when the frame was given to the driver, in ns of the sender's monotonic clock |

use baton_microbench::frame::{Ends, udp_frame};

/// Length of the stamp in bytes.
pub const STAMP_BYTES: usize = 18;
const MAGIC: u16 = 0xba70;

const ETHERNET: usize = 14;
const UDP: usize = ETHERNET + 20;
const DATA: usize = UDP + 8;
const STAMP: std::ops::Range<usize> = DATA..DATA + STAMP_BYTES;
const IP_CHECKSUM_OF_ALL: u16 = 0xffff;

/// Content of a frame's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The stream of the frame.
    pub stream: u8,
    /// The trial of the frame, modulo 256.
    pub trial: u8,
    /// Sequence number in the stream; 48 bits.
    pub sequence: u64,
    /// When the frame was given to the driver, in ns of the sender's clock.
    pub sent_ns: u64,
}

/// Classification of a frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A frame of the stream with all bytes correct.
    Whole(Stamp),
    /// A frame of an earlier trial.
    Stale,
    /// A frame of the stream that was modified on the way.
    Wrong,
    /// A frame of other traffic.
    Foreign,
}

/// The frames of a stream, which differ in their stamps only.
#[derive(Clone, Debug)]
pub struct Template {
    frame: Vec<u8>,
    stream: u8,
    trial: u8,
    /// Sum of everything that the UDP checksum covers except the stamp (RFC 1071).
    sum: u32,
}

impl Template {
    /// Creates the template of frames between `ends` with `payload_len` bytes of data.
    ///
    /// # Panics
    /// The data is too short for a stamp.
    pub fn new(ends: &Ends, payload_len: u16, stream: u8, trial: u8) -> Self {
        assert!(usize::from(payload_len) >= STAMP_BYTES, "room for a stamp");
        let mut frame = udp_frame(ends, payload_len);
        let end = DATA + usize::from(payload_len);
        frame[UDP + 6..UDP + 8].fill(0);
        frame[STAMP].fill(0);
        const UDP_PROTOCOL: u32 = 17;
        let addresses = sum(&frame[UDP - 8..UDP]);
        let sum = addresses + UDP_PROTOCOL + (end - UDP) as u32 + sum(&frame[UDP..end]);
        Self {
            frame,
            stream,
            trial,
            sum,
        }
    }

    /// Returns a frame of the right length without a stamp.
    pub fn blank(&self) -> &[u8] {
        &self.frame
    }

    /// Stamps a frame of this template, and updates its checksum.
    pub fn stamp(&self, frame: &mut [u8], sequence: u64, sent_ns: u64) {
        let stamp = &mut frame[STAMP];
        stamp[..2].copy_from_slice(&MAGIC.to_be_bytes());
        stamp[2..4].copy_from_slice(&[self.stream, self.trial]);
        stamp[4..10].copy_from_slice(&sequence.to_be_bytes()[2..]);
        stamp[10..].copy_from_slice(&sent_ns.to_be_bytes());
        let checksum = self.checksum(stamp);
        frame[UDP + 6..UDP + 8].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Returns the checksum of a frame with this stamp (RFC 768: all ones instead of zero).
    fn checksum(&self, stamp: &[u8]) -> u16 {
        match !folded(self.sum + sum(stamp)) {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Classifies `frame`. Routers may have changed Ethernet addresses and decremented the TTL.
    pub fn examine(&self, frame: &[u8]) -> Seen {
        let own = &self.frame;
        const ADDRESSES: std::ops::Range<usize> = UDP - 8..UDP;
        let is_of_stream = frame.len() >= DATA
            && frame[12..14] == own[12..14]
            && frame[ADDRESSES] == own[ADDRESSES]
            && frame[UDP - 11] == own[UDP - 11]
            && frame[UDP..UDP + 4] == own[UDP..UDP + 4];
        if !is_of_stream {
            return Seen::Foreign;
        }
        if frame.len() < own.len() {
            return Seen::Wrong;
        }
        let stamp = &frame[STAMP];
        let hops = ETHERNET + 8;
        let is_whole = frame[ETHERNET..hops] == own[ETHERNET..hops]
            && frame[hops] <= own[hops]
            && folded(sum(&frame[ETHERNET..UDP])) == IP_CHECKSUM_OF_ALL
            && frame[UDP + 4..UDP + 6] == own[UDP + 4..UDP + 6]
            && frame[UDP + 6..UDP + 8] == self.checksum(stamp).to_be_bytes()
            && stamp[..3] == [(MAGIC >> 8) as u8, MAGIC as u8, self.stream]
            && frame[STAMP.end..own.len()] == own[STAMP.end..];
        if !is_whole {
            return Seen::Wrong;
        }
        if stamp[3] != self.trial {
            return Seen::Stale;
        }
        let mut sequence = [0; 8];
        sequence[2..].copy_from_slice(&stamp[4..10]);
        let sent = stamp[10..].first_chunk().expect("eight bytes");
        Seen::Whole(Stamp {
            stream: self.stream,
            trial: self.trial,
            sequence: u64::from_be_bytes(sequence),
            sent_ns: u64::from_be_bytes(*sent),
        })
    }
}

/// Returns the sum of 16-bit words as in checksums (RFC 1071); a last odd byte counts as the first of two.
fn sum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)));
    words.sum::<u32>() + rest.first().map_or(0, |byte| u32::from(*byte) << 8)
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends() -> Ends {
        Ends {
            ethernet: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            ip: [[198, 18, 0, 1], [198, 18, 0, 2]],
            ports: [9_000, 9_001],
        }
    }

    /// Returns whether the checksum is that of a frame built with this data.
    fn is_right(frame: &[u8], payload_len: u16) -> bool {
        let end = DATA + usize::from(payload_len);
        let covered = sum(&frame[UDP - 8..UDP]) + 17 + (end - UDP) as u32 + sum(&frame[UDP..end]);
        folded(covered) == 0xffff
    }

    proptest! {
        #[test]
        fn stamps_round_trip_with_a_correct_checksum(
            sequence in 0_u64..1 << 48, sent_ns: u64, payload_len in 18_u16..1_473, stream in 0_u8..2, trial: u8,
        ) {
            let template = Template::new(&ends(), payload_len, stream, trial);
            let mut frame = template.blank().to_vec();
            template.stamp(&mut frame, sequence, sent_ns);
            prop_assert!(is_right(&frame, payload_len));
            let stamp = Stamp { stream, trial, sequence, sent_ns };
            prop_assert_eq!(template.examine(&frame), Seen::Whole(stamp));
            let next = Template::new(&ends(), payload_len, stream, trial.wrapping_add(1));
            prop_assert_eq!(next.examine(&frame), Seen::Stale);
        }

        #[test]
        fn a_changed_bit_is_detected(at in ETHERNET..DATA + 100, bit in 0_u8..8) {
            let template = Template::new(&ends(), 100, 0, 1);
            let mut frame = template.blank().to_vec();
            template.stamp(&mut frame, 77, 88);
            frame[at] ^= 1_u8 << bit;
            let seen = template.examine(&frame);
            prop_assert!(matches!(seen, Seen::Wrong | Seen::Foreign), "{:?}", seen);
        }
    }

    #[test]
    fn a_router_may_count_hops_and_change_ethernet_addresses() {
        let template = Template::new(&ends(), 18, 0, 1);
        let mut frame = template.blank().to_vec();
        template.stamp(&mut frame, 5, 6);
        frame[..12].fill(7);
        // Decrementing the TTL adds 0x100 to the checksum (RFC 1624).
        frame[ETHERNET + 8] -= 1;
        assert_eq!(
            template.examine(&frame),
            Seen::Wrong,
            "the checksum is stale"
        );
        let checksum = u16::from_be_bytes([frame[ETHERNET + 10], frame[ETHERNET + 11]]);
        frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&(checksum + 0x100).to_be_bytes());
        assert!(matches!(template.examine(&frame), Seen::Whole(_)));
        assert_eq!(template.examine(&frame[..50]), Seen::Wrong, "cut off");
        assert_eq!(template.examine(&frame[..20]), Seen::Foreign);
    }
}

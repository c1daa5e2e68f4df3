//! Sizes of transaction-layer packets on a link.

use super::config::{CREDIT_BYTES, PciExpressConfig};
use super::rate::has_flits;
use crate::interconnect::Piece;
use crate::interconnect::size::PowerOfTwo;

/// Framing, sequence number and link check sequence around a packet (PCIe 3.6, 4.2.1, 4.2.2). Flits have none of these.
const LINK_BYTES: u64 = 8;

/// One word of a header.
const WORD: u64 = 4;

/// Splits transfers into packets.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    /// Bytes of a write or read request on the link, without payload.
    request_bytes: u64,
    /// Bytes of a completion on the link, without payload.
    completion_header_bytes: u64,
    max_payload: PowerOfTwo,
    max_read_request: PowerOfTwo,
    max_completion: PowerOfTwo,
    misaligned: u64,
    /// Bytes on the link of the completions of the largest read request.
    largest_read_line: u64,
}

/// Packets that are sent one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Train {
    /// Bytes of payload.
    pub(super) payload: u64,
    /// Number of packets, and of header credits.
    pub(super) packets: u32,
    /// Credits for data.
    pub(super) data_credits: u32,
    /// Bytes on the link.
    pub(super) line_bytes: u64,
}

/// Reads that are requested together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) count: u32,
    /// Requests of all reads.
    pub(super) requests: u32,
    /// Bytes on the link of the completions of all reads.
    pub(super) line_bytes: u64,
}

impl Packets {
    pub(super) fn new(config: &PciExpressConfig) -> Self {
        let link = if has_flits(config) { 0 } else { LINK_BYTES };
        let around = link + if config.ecrc { WORD } else { 0 };
        let request_words = if config.long_addresses { 4 } else { 3 };
        let mut packets = Self {
            request_bytes: around + request_words * WORD,
            completion_header_bytes: around + 3 * WORD,
            max_payload: PowerOfTwo::new(config.max_payload_bytes),
            max_read_request: PowerOfTwo::new(config.max_read_request_bytes),
            max_completion: PowerOfTwo::new(config.completion_bytes),
            misaligned: config.misaligned_bytes.into(),
            largest_read_line: 0,
        };
        let largest = packets.completions(packets.max_read_request.get());
        packets.largest_read_line = largest.line_bytes;
        packets
    }

    /// Returns the first packet of a write with `bytes` remaining.
    pub(super) fn first_write(&self, bytes: u64) -> Train {
        self.train(bytes.min(self.max_payload.get()), 1, self.request_bytes)
    }

    /// Returns all packets of a write with `bytes` remaining.
    pub(super) fn writes(&self, bytes: u64) -> Train {
        let packets = self.max_payload.count(bytes).max(1);
        self.train(bytes, packets, self.request_bytes)
    }

    /// Returns the size of a read request on the link.
    pub(super) fn request_bytes(&self) -> u64 {
        self.request_bytes
    }

    /// Returns the number of bytes that the next request asks for, of a read with `bytes` not yet requested.
    pub(super) fn first_read(&self, bytes: u64) -> u64 {
        bytes.min(self.max_read_request.get())
    }

    /// Returns a read of `bytes`.
    pub(super) fn read(&self, bytes: u64) -> Reads {
        Reads {
            count: 1,
            requests: self.requests(bytes) as u32,
            line_bytes: self.all_completion_bytes(bytes),
        }
    }

    /// Returns one read for each piece.
    pub(super) fn reads(&self, pieces: &[Piece]) -> Reads {
        pieces.iter().fold(Reads::default(), |reads, piece| {
            let read = self.read(piece.bytes.into());
            Reads {
                count: reads.count + 1,
                requests: reads.requests + read.requests,
                line_bytes: reads.line_bytes + read.line_bytes,
            }
        })
    }

    /// Returns the number of requests for a read of `bytes`.
    pub(super) fn requests(&self, bytes: u64) -> u64 {
        self.max_read_request.count(bytes).max(1)
    }

    /// Returns the completions of one read request.
    pub(super) fn completions(&self, bytes: u64) -> Train {
        let packets = self.max_completion.count(self.misaligned + bytes).max(1);
        self.train(bytes, packets, self.completion_header_bytes)
    }

    /// Returns the total size of the completions of all read requests for `bytes`: payload and headers on the link.
    pub(super) fn all_completion_bytes(&self, bytes: u64) -> u64 {
        let (whole, rest) = self.max_read_request.divide(bytes);
        let last = if rest > 0 || whole == 0 {
            self.completions(rest).line_bytes
        } else {
            0
        };
        whole * self.largest_read_line + last
    }

    fn train(&self, payload: u64, packets: u64, header: u64) -> Train {
        Train {
            payload,
            packets: packets as u32,
            // The length of every packet but the last is a multiple of a credit's bytes.
            data_credits: payload.div_ceil(u64::from(CREDIT_BYTES)) as u32,
            line_bytes: payload + packets * header,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(change: impl FnOnce(&mut PciExpressConfig)) -> Packets {
        let mut config = PciExpressConfig::default();
        change(&mut config);
        Packets::new(&config)
    }

    #[test]
    fn headers_are_as_long_as_in_pcie_bench() {
        let default = packets(|_| ());
        assert_eq!(default.request_bytes(), 24);
        assert_eq!(default.completions(64).line_bytes, 84);
        assert_eq!(default.writes(1_500).line_bytes, 1_500 + 6 * 24);
        let short = packets(|config| (config.long_addresses, config.ecrc) = (false, true));
        assert_eq!(short.request_bytes(), 24);
        assert_eq!(short.completions(64).line_bytes, 88);
        let flits = packets(|config| config.generation = 6);
        assert_eq!(flits.request_bytes(), 16);
        assert_eq!(flits.completions(64).line_bytes, 76);
    }

    #[test]
    fn completions_end_on_the_boundary() {
        let aligned = packets(|config| config.completion_bytes = 64);
        assert_eq!(aligned.completions(512).packets, 8);
        let misaligned = packets(|config| {
            (config.completion_bytes, config.misaligned_bytes) = (64, 4);
        });
        assert_eq!(misaligned.completions(512).packets, 9);
        assert_eq!(misaligned.completions(60).packets, 1);
        assert_eq!(misaligned.completions(61).packets, 2);
    }

    #[test]
    fn an_empty_transfer_is_one_packet() {
        let default = packets(|_| ());
        assert_eq!(default.writes(0).packets, 1);
        assert_eq!(default.first_write(0).line_bytes, 24);
        assert_eq!(default.completions(0).line_bytes, 20);
        assert_eq!(default.all_completion_bytes(0), 20);
        assert_eq!(default.all_completion_bytes(1_500), 1_500 + 6 * 20);
        assert_eq!(default.all_completion_bytes(1_024), 1_024 + 4 * 20);
    }
}

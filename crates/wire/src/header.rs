//! TCP headers as values (RFC 9293 3.1), and their lengths on the wire.

use crate::{FastOpenOption, SackBlocks, SeqNr};
use serde::{Deserialize, Serialize};

bitflags::bitflags! {
    /// Control bits (RFC 9293 3.1, RFC 3168 6.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    pub struct Flags: u8 {
        /// No more data from the sender.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset the connection.
        const RST = 0x04;
        /// Push.
        const PSH = 0x08;
        /// The acknowledgment field is significant.
        const ACK = 0x10;
        /// The urgent pointer is significant (RFC 9293 3.8.5).
        const URG = 0x20;
        /// ECN echo.
        const ECE = 0x40;
        /// Congestion window reduced.
        const CWR = 0x80;
    }
}

/// The ECN field of the IP header (RFC 3168 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Ecn {
    /// The transport does not support ECN.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// Congestion experienced.
    Congested,
}

impl Ecn {
    /// Decodes the lower two bits of an IPv4 type of service or an IPv6 traffic class (RFC 3168 5).
    pub const fn of_traffic_class(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Congested,
        }
    }

    /// Returns the type of service or traffic class with this field; the other bits are zero.
    pub const fn to_traffic_class(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::Congested => 3,
        }
    }
}

/// The timestamps option (RFC 7323 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the value being echoed.
    pub echo: u32,
}

/// One block of a SACK option: `start` up to but not including `end` (RFC 2018 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: SeqNr,
    /// The sequence number after the last one of the block.
    pub end: SeqNr,
}

/// The options that Baton supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Options {
    /// Maximum segment size (SYN only).
    pub mss: Option<u16>,
    /// Window scale shift (SYN only, RFC 7323 2.2).
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only, RFC 2018 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 3.2).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks, at most four, most recent first.
    pub sack: SackBlocks,
    /// Fast Open (SYN only, RFC 7413 4.1.1).
    pub fast_open: Option<FastOpenOption>,
    /// Urgent pointer; meaningful with [`Flags::URG`]: the distance from the segment's sequence number to the number after the last urgent
    /// byte (RFC 6093 3.1). The pointer is not an option, but as rare as one, and storing it here needs no additional memory.
    pub urgent: u16,
}

impl Options {
    /// Returns the length of these options in the header, padded to a multiple of four bytes, in the layout of Linux: with timestamps,
    /// SACK-permitted needs no additional bytes.
    #[inline]
    pub fn len(&self) -> usize {
        let mut len = 0;
        len += if self.mss.is_some() { 4 } else { 0 };
        len += if self.window_scale.is_some() { 4 } else { 0 };
        len += if self.sack_permitted && self.timestamps.is_none() {
            4
        } else {
            0
        };
        len += if self.timestamps.is_some() { 12 } else { 0 };
        len += if self.sack.is_empty() {
            0
        } else {
            4 + 8 * self.sack.len()
        };
        len += match &self.fast_open {
            Some(option) => option.len().next_multiple_of(4),
            None => 0,
        };
        len
    }

    /// Returns whether no option is present.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A TCP header without ports (which are in the segment's endpoints) and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Header {
    /// Sequence number of the first byte (or of the SYN).
    pub seq: SeqNr,
    /// Acknowledgment number; meaningful with [`Flags::ACK`].
    pub ack: SeqNr,
    /// Control bits.
    pub flags: Flags,
    /// Window as in the header, before scaling.
    pub window: u16,
    /// Options.
    pub options: Options,
}

impl Header {
    /// Returns whether this is the header of a segment that opens a connection: a SYN without ACK and RST.
    pub fn opens(&self) -> bool {
        self.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
    }
}

/// Length of the Ethernet header and frame check sequence, bytes.
pub const ETHERNET_OVERHEAD: usize = 14 + 4;

/// Returns the length in bytes of an Ethernet frame that carries `ip_len` bytes, including the frame check sequence (IEEE 802.3: at least
/// 64).
pub const fn frame_len(ip_len: usize) -> usize {
    let len = ip_len + ETHERNET_OVERHEAD;
    if len < 64 { 64 } else { len }
}

/// Returns the line time that a frame takes, in bytes: with preamble (8) and inter-frame gap (12).
pub const fn line_len(frame_len: usize) -> usize {
    frame_len + 20
}

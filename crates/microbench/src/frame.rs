//! The frames of the tests, and how many of them an Ethernet link can carry.

use baton_wire::{frame_len, line_len};
use etherparse::PacketBuilder;
use serde::{Deserialize, Serialize};

pub use baton_sim::hardware::nic::LinkRate;

/// Returns how many whole connections per millisecond fit a link.
pub const fn connections_per_ms(link: LinkRate) -> u64 {
    Carried::Tcp(0).frames_per_second(link) / FRAMES_PER_CONNECTION / 1_000
}

/// Bytes of IPv4 and UDP headers.
const UDP_HEADERS: usize = 20 + 8;

/// Bytes of IPv4 and TCP headers without options.
const TCP_HEADERS: usize = 20 + 20;

/// Payload of the frames of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A UDP datagram with this many bytes of data.
    Udp(u16),
    /// A TCP segment with this many bytes of data and no options.
    Tcp(u16),
}

impl Carried {
    /// Returns the number of bytes of data.
    pub const fn payload_len(self) -> usize {
        match self {
            Self::Udp(len) | Self::Tcp(len) => len as usize,
        }
    }

    /// Returns the length of the Ethernet frame in bytes, including the check sequence.
    pub const fn frame_len(self) -> usize {
        match self {
            Self::Udp(len) => frame_len(UDP_HEADERS + len as usize),
            Self::Tcp(len) => frame_len(TCP_HEADERS + len as usize),
        }
    }

    /// Returns the bytes of line time that the frame takes, including preamble and gap.
    pub const fn line_len(self) -> usize {
        line_len(self.frame_len())
    }

    /// Returns how many whole frames per second a link can carry.
    pub const fn frames_per_second(self, link: LinkRate) -> u64 {
        link.bits_per_second() / (8 * self.line_len() as u64)
    }

    /// Returns the rate of data that a link can carry in one direction, in whole Mb/s.
    pub const fn payload_mbps(self, link: LinkRate) -> u64 {
        link.mbps as u64 * self.payload_len() as u64 / self.line_len() as u64
    }

    /// Returns the rate of data that a link can carry in both directions together, in whole Mb/s.
    pub const fn payload_mbps_both_ways(self, link: LinkRate) -> u64 {
        2 * link.mbps as u64 * self.payload_len() as u64 / self.line_len() as u64
    }
}

/// Frames in one direction for each connection that is opened and closed: SYN, ACK, FIN and ACK.
const FRAMES_PER_CONNECTION: u64 = 4;

/// Addresses of a frame's sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// Ethernet addresses, sender first.
    pub ethernet: [[u8; 6]; 2],
    /// IPv4 addresses, sender first.
    pub ip: [[u8; 4]; 2],
    /// UDP ports, sender first.
    pub ports: [u16; 2],
}

/// Returns a frame with `payload_len` bytes of UDP data as a driver takes it: padded to the minimum length, without check sequence.
pub fn udp_frame(ends: &Ends, payload_len: u16) -> Vec<u8> {
    const HOPS: u8 = 64;
    const LEAST: usize = 60;
    let payload: Vec<u8> = (0..payload_len).map(|at| at as u8).collect();
    let [from, to] = ends.ethernet;
    let builder = PacketBuilder::ethernet2(from, to)
        .ipv4(ends.ip[0], ends.ip[1], HOPS)
        .udp(ends.ports[0], ends.ports[1]);
    let mut frame = Vec::with_capacity(builder.size(payload.len()).max(LEAST));
    builder
        .write(&mut frame, &payload)
        .expect("a datagram of this length fits, and writing to a vector does not fail");
    frame.resize(frame.len().max(LEAST), 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{
        EthernetFrame, EthernetProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
    };

    /// Values for 1 Gb/s, with preamble and gap (IEEE 802.3).
    #[test]
    fn limits_are_those_of_ethernet() {
        let large = Carried::Udp(1_472);
        assert_eq!((large.frame_len(), large.line_len()), (1_518, 1_538));
        assert_eq!(large.frames_per_second(LinkRate::GIGABIT), 81_274);
        assert_eq!(
            (
                large.payload_mbps(LinkRate::GIGABIT),
                large.payload_mbps_both_ways(LinkRate::GIGABIT)
            ),
            (957, 1_914)
        );
        let small = Carried::Udp(18);
        assert_eq!((small.frame_len(), small.line_len()), (64, 84));
        assert_eq!(small.frames_per_second(LinkRate::GIGABIT), 1_488_095);
        assert_eq!(
            (
                small.payload_mbps(LinkRate::GIGABIT),
                small.payload_mbps_both_ways(LinkRate::GIGABIT)
            ),
            (214, 428)
        );
        let segment = Carried::Tcp(1_460);
        assert_eq!((segment.frame_len(), segment.line_len()), (1_518, 1_538));
        assert_eq!(
            (
                segment.frames_per_second(LinkRate::GIGABIT),
                segment.payload_mbps(LinkRate::GIGABIT)
            ),
            (81_274, 949)
        );
        let ack = Carried::Tcp(0);
        assert_eq!((ack.frame_len(), ack.line_len()), (64, 84));
        assert_eq!(connections_per_ms(LinkRate::GIGABIT), 372);
        // Commonly quoted as 148.8 million packets per second.
        let fast = LinkRate { mbps: 100_000 };
        assert_eq!(small.frames_per_second(fast), 148_809_523);
    }

    #[test]
    fn an_independent_parser_reads_the_frames() {
        let ends = Ends {
            ethernet: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            ip: [[10, 0, 0, 1], [10, 0, 0, 2]],
            ports: [9_000, 9_001],
        };
        for payload_len in [0, 1, 17, 18, 19, 1_472] {
            let bytes = udp_frame(&ends, payload_len);
            // The NIC adds the check sequence.
            assert_eq!(bytes.len() + 4, Carried::Udp(payload_len).frame_len());
            let ethernet = EthernetFrame::new_checked(&bytes[..]).expect("an Ethernet frame");
            assert_eq!(ethernet.src_addr().0, ends.ethernet[0]);
            assert_eq!(ethernet.dst_addr().0, ends.ethernet[1]);
            assert_eq!(ethernet.ethertype(), EthernetProtocol::Ipv4);
            let ip = Ipv4Packet::new_checked(ethernet.payload()).expect("an IPv4 packet");
            let checksums = ChecksumCapabilities::default();
            let addresses = Ipv4Repr::parse(&ip, &checksums).expect("its checksum is right");
            assert_eq!(
                [addresses.src_addr.octets(), addresses.dst_addr.octets()],
                ends.ip
            );
            let udp = UdpPacket::new_checked(ip.payload()).expect("a UDP datagram");
            let (from, to) = (addresses.src_addr.into(), addresses.dst_addr.into());
            let ports =
                UdpRepr::parse(&udp, &from, &to, &checksums).expect("its checksum is right");
            assert_ne!(udp.checksum(), 0, "it has one");
            assert_eq!([ports.src_port, ports.dst_port], ends.ports);
            assert_eq!(udp.payload().len(), usize::from(payload_len));
        }
    }
}

//! TCP segments to bytes. A header library lays out the fields; here is which ones, and the checksum over them.

use crate::checksum::Checksum;
use crate::options::OptionBytes;
use crate::{Ecn, EncodeError, Flags, Head, Link, Packet};
use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader, TcpOptions,
};
use std::net::IpAddr;

/// Hops that packets may take: the usual value, and the one RFC 1700 recommends.
pub const HOP_LIMIT: u8 = 64;

/// Where the checksum stands in a TCP header (RFC 9293 3.1).
const TCP_CHECKSUM_AT: usize = 16;

/// Appends an Ethernet frame, without padding and frame check sequence, to `out`.
///
/// # Errors
/// When there is no such frame; then `out` is as it was.
pub fn encode_frame(
    link: Link,
    packet: &Packet,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    encode_link(link, packet.src.addr, out);
    let outcome = encode_packet(packet, payload, out);
    if outcome.is_err() {
        out.truncate(start);
    }
    outcome
}

/// Appends an IP packet to `out`, with right checksums.
///
/// # Errors
/// When there is no such packet; then `out` is as it was.
pub fn encode_packet(
    packet: &Packet,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    encode_pieces(packet.head(), std::iter::once(payload), out)
}

/// Appends the header of an Ethernet frame that carries a packet from `src` to `out`.
pub fn encode_link(link: Link, src: IpAddr, out: &mut Vec<u8>) {
    let ethernet = Ethernet2Header {
        source: link.src,
        destination: link.dst,
        ether_type: match src {
            IpAddr::V4(_) => EtherType::IPV4,
            IpAddr::V6(_) => EtherType::IPV6,
        },
    };
    out.extend_from_slice(&ethernet.to_bytes());
}

/// Appends an IP packet to `out` whose data lies in pieces, which are copied once. A packet that IPv4 carries must not be
/// fragmented on its way (RFC 1191 3).
///
/// # Errors
/// When there is no such packet; then `out` is as it was.
pub fn encode_pieces<'a>(
    head: Head<'_>,
    pieces: impl Iterator<Item = &'a [u8]> + Clone,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let tcp = tcp_header(head)?;
    let tcp_len = tcp.header_len() + pieces.clone().map(<[u8]>::len).sum::<usize>();
    let pseudo_header = encode_ip(head, tcp_len, out)?;
    let tcp_start = out.len();
    out.reserve(tcp_len);
    out.extend_from_slice(&tcp.to_bytes());
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    let tcp = &mut out[tcp_start..];
    let checksum = pseudo_header.add(tcp).to_bytes();
    tcp[TCP_CHECKSUM_AT..TCP_CHECKSUM_AT + 2].copy_from_slice(&checksum);
    Ok(())
}

/// Appends the IP header of a segment of `tcp_len` bytes; gives the sum of what TCP calls the pseudo-header.
fn encode_ip(head: Head<'_>, tcp_len: usize, out: &mut Vec<u8>) -> Result<Checksum, EncodeError> {
    let too_long = EncodeError::TooLong(tcp_len);
    let len = u16::try_from(tcp_len).map_err(|_| too_long)?;
    match (head.src.addr, head.dst.addr) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let (src, dst) = (src.octets(), dst.octets());
            let mut ip =
                Ipv4Header::new(len, HOP_LIMIT, IpNumber::TCP, src, dst).map_err(|_| too_long)?;
            ip.ecn = ecn_field(head.ecn);
            ip.header_checksum = ip.calc_header_checksum();
            out.extend_from_slice(&ip.to_bytes());
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let ip = Ipv6Header {
                traffic_class: ecn_field(head.ecn).value(),
                payload_length: len,
                next_header: IpNumber::TCP,
                hop_limit: HOP_LIMIT,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            };
            out.extend_from_slice(&ip.to_bytes());
        }
        _ => return Err(EncodeError::MixedVersions),
    }
    Ok(pseudo_header(
        head.src.addr,
        head.dst.addr,
        IpNumber::TCP.0,
        len,
    ))
}

/// The sum of a pseudo-header (RFC 9293 3.1, RFC 8200 8.1): addresses, protocol number and length of what is carried.
pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: u16) -> Checksum {
    let sum = Checksum::new().add_u16(protocol.into()).add_u16(len);
    [src, dst].iter().fold(sum, |sum, addr| match addr {
        IpAddr::V4(addr) => sum.add(&addr.octets()),
        IpAddr::V6(addr) => sum.add(&addr.octets()),
    })
}

fn tcp_header(head: Head<'_>) -> Result<TcpHeader, EncodeError> {
    let header = head.header;
    let has = |flag| header.flags.contains(flag);
    let too_many = EncodeError::TooManyOptions(header.options.len());
    let options = OptionBytes::new(&header.options).ok_or(too_many)?;
    let options = TcpOptions::try_from_slice(options.as_slice()).map_err(|_| too_many)?;
    Ok(TcpHeader {
        acknowledgment_number: header.ack.0,
        fin: has(Flags::FIN),
        syn: has(Flags::SYN),
        rst: has(Flags::RST),
        psh: has(Flags::PSH),
        ack: has(Flags::ACK),
        urg: has(Flags::URG),
        ece: has(Flags::ECE),
        cwr: has(Flags::CWR),
        options,
        ..TcpHeader::new(head.src.port, head.dst.port, header.seq.0, header.window)
    })
}

fn ecn_field(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::NotEct,
        Ecn::Capable1 => IpEcn::Ect1,
        Ecn::Capable0 => IpEcn::Ect0,
        Ecn::Congested => IpEcn::CongestionExperienced,
    }
}

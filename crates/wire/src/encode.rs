//! TCP segments to bytes. A library lays out the headers below TCP; here are TCP's, and the checksum.

use crate::checksum::Checksum;
use crate::options::OptionBytes;
use crate::{Ecn, EncodeError, Head, Link, Packet};
use etherparse::{EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, Ipv6Header};
use std::net::IpAddr;

/// Hops that packets may take: the usual value, and the one RFC 1700 recommends.
pub const HOP_LIMIT: u8 = 64;

/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: usize = 20;

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
    let options = &head.header.options;
    let too_many = EncodeError::TooManyOptions(options.len());
    let options = OptionBytes::new(options).ok_or(too_many)?;
    let tcp_len =
        TCP_HEADER_LEN + options.as_slice().len() + pieces.clone().map(<[u8]>::len).sum::<usize>();
    let pseudo_header = encode_ip(head, tcp_len, out)?;
    let tcp_start = out.len();
    out.reserve(tcp_len);
    write_tcp_header(head, &options, out);
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    let tcp = &mut out[tcp_start..];
    let checksum = pseudo_header.add_bytes(tcp).to_bytes();
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
        IpAddr::V4(addr) => sum.add_bytes(&addr.octets()),
        IpAddr::V6(addr) => sum.add_bytes(&addr.octets()),
    })
}

/// Appends the TCP header, its checksum still zero (RFC 9293 3.1). TCP is Baton's own matter, and this is written for each
/// segment; so no library does it.
fn write_tcp_header(head: Head<'_>, options: &OptionBytes, out: &mut Vec<u8>) {
    let header = head.header;
    let mut bytes = [0; TCP_HEADER_LEN];
    bytes[0..2].copy_from_slice(&head.src.port.to_be_bytes());
    bytes[2..4].copy_from_slice(&head.dst.port.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.seq.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&header.ack.0.to_be_bytes());
    bytes[12] = ((TCP_HEADER_LEN + options.as_slice().len()) as u8 / 4) << 4;
    bytes[13] = header.flags.bits();
    bytes[14..16].copy_from_slice(&header.window.to_be_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(options.as_slice());
}

fn ecn_field(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::NotEct,
        Ecn::Capable1 => IpEcn::Ect1,
        Ecn::Capable0 => IpEcn::Ect0,
        Ecn::Congested => IpEcn::CongestionExperienced,
    }
}

//! TCP segments to and from bytes. A header library lays out the fields; here is which ones, in what order.

use crate::{Ecn, Endpoint, Flags, Header, Options, SackBlock, SeqNr, Timestamps};
use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, Ipv6Header, NetHeaders, PacketHeaders,
    TcpHeader, TcpOptionElement, TcpOptionReadError, TcpOptionsIterator, TransportHeader,
};
use std::net::IpAddr;

/// Hops that packets may take: the usual value, and the one RFC 1700 recommends.
const HOP_LIMIT: u8 = 64;

/// All of a segment but its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// TCP header.
    pub header: Header,
}

/// The two ends of a link, as their Ethernet addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Sender.
    pub src: [u8; 6],
    /// Receiver.
    pub dst: [u8; 6],
}

/// Why a segment cannot be written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The ends have addresses of different versions.
    #[error("one end has an IPv4 address and the other an IPv6 address")]
    MixedVersions,
    /// It does not fit into an IP packet.
    #[error("{0} bytes do not fit into an IP packet")]
    TooLong(usize),
    /// Its options do not fit into a TCP header, which has room for 40 bytes of them.
    #[error("{0} bytes of options do not fit into a TCP header")]
    TooManyOptions(usize),
}

/// Why bytes are not taken as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecodeError {
    /// A header or the data is cut off, or a length field says nonsense.
    #[error("a header is incomplete or breaks its format")]
    Malformed,
    /// It carries something other than TCP over IP.
    #[error("it does not carry TCP over IP")]
    NotTcp,
    /// It is a fragment of a packet.
    #[error("it is a fragment")]
    Fragment,
    /// The IPv4 header's checksum is wrong.
    #[error("the IPv4 header checksum is wrong")]
    IpChecksum,
    /// The TCP checksum is wrong.
    #[error("the TCP checksum is wrong")]
    TcpChecksum,
}

impl Link {
    /// Made-up, locally administered Ethernet addresses that show the Internet addresses, for simulated links.
    pub fn between(src: IpAddr, dst: IpAddr) -> Self {
        Self {
            src: ethernet_address(src),
            dst: ethernet_address(dst),
        }
    }
}

/// `02:00` and the last four bytes of the Internet address.
fn ethernet_address(addr: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match addr {
        IpAddr::V4(addr) => addr.octets(),
        IpAddr::V6(addr) => (addr.to_bits() as u32).to_be_bytes(),
    };
    [2, 0, a, b, c, d]
}

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
    let ether_type = match packet.src.addr {
        IpAddr::V4(_) => EtherType::IPV4,
        IpAddr::V6(_) => EtherType::IPV6,
    };
    let ethernet = Ethernet2Header {
        source: link.src,
        destination: link.dst,
        ether_type,
    };
    out.extend_from_slice(&ethernet.to_bytes());
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
    let mut tcp = tcp_header(packet)?;
    let len = tcp.header_len() + payload.len();
    let too_long = EncodeError::TooLong(len);
    match (packet.src.addr, packet.dst.addr) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let ip_len = u16::try_from(len).map_err(|_| too_long)?;
            let (src, dst) = (src.octets(), dst.octets());
            let mut ip = Ipv4Header::new(ip_len, HOP_LIMIT, IpNumber::TCP, src, dst)
                .map_err(|_| too_long)?;
            ip.ecn = ecn_field(packet.ecn);
            ip.header_checksum = ip.calc_header_checksum();
            tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).map_err(|_| too_long)?;
            out.extend_from_slice(&ip.to_bytes());
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let ip = Ipv6Header {
                traffic_class: ecn_field(packet.ecn).value(),
                payload_length: u16::try_from(len).map_err(|_| too_long)?,
                next_header: IpNumber::TCP,
                hop_limit: HOP_LIMIT,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            };
            tcp.checksum = tcp.calc_checksum_ipv6(&ip, payload).map_err(|_| too_long)?;
            out.extend_from_slice(&ip.to_bytes());
        }
        _ => return Err(EncodeError::MixedVersions),
    }
    out.extend_from_slice(&tcp.to_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

fn tcp_header(packet: &Packet) -> Result<TcpHeader, EncodeError> {
    let header = &packet.header;
    let has = |flag| header.flags.contains(flag);
    let mut tcp = TcpHeader {
        acknowledgment_number: header.ack.0,
        fin: has(Flags::FIN),
        syn: has(Flags::SYN),
        rst: has(Flags::RST),
        psh: has(Flags::PSH),
        ack: has(Flags::ACK),
        urg: has(Flags::URG),
        ece: has(Flags::ECE),
        cwr: has(Flags::CWR),
        ..TcpHeader::new(
            packet.src.port,
            packet.dst.port,
            header.seq.0,
            header.window,
        )
    };
    let too_many = EncodeError::TooManyOptions(header.options.len());
    let elements = option_elements(&header.options).ok_or(too_many)?;
    tcp.set_options(&elements).map_err(|_| too_many)?;
    debug_assert_eq!(
        tcp.options.len(),
        header.options.len(),
        "options take the room they say"
    );
    Ok(tcp)
}

/// Options in the order and with the padding of BSD, where each starts so that its numbers are aligned.
/// `None` when there are more than four SACK blocks.
fn option_elements(options: &Options) -> Option<Vec<TcpOptionElement>> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
        Timestamp, WindowScale,
    };
    let mut elements = Vec::new();
    if let Some(mss) = options.mss {
        elements.push(MaximumSegmentSize(mss));
    }
    if let Some(shift) = options.window_scale {
        elements.extend([Noop, WindowScale(shift)]);
    }
    if options.sack_permitted {
        elements.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
    }
    if let Some(Timestamps { value, echo }) = options.timestamps {
        elements.extend([Noop, Noop, Timestamp(value, echo)]);
    }
    let mut blocks = options
        .sack
        .iter()
        .map(|block| (block.start.0, block.end.0));
    if let Some(first) = blocks.next() {
        let rest = [blocks.next(), blocks.next(), blocks.next()];
        elements.extend([Noop, Noop, SelectiveAcknowledgement(first, rest)]);
    }
    blocks.next().is_none().then_some(elements)
}

/// Reads an Ethernet frame without its check sequence; gives the segment and its data.
///
/// # Errors
/// When it is not a whole and right TCP segment.
pub fn decode_frame(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    let headers = PacketHeaders::from_ethernet_slice(bytes).map_err(|_| DecodeError::Malformed)?;
    decode_headers(headers)
}

/// Reads an IP packet; gives the segment and its data. Options that Baton does not know are skipped.
///
/// # Errors
/// When it is not a whole and right TCP segment.
pub fn decode_packet(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    let headers = PacketHeaders::from_ip_slice(bytes).map_err(|_| DecodeError::Malformed)?;
    decode_headers(headers)
}

fn decode_headers(headers: PacketHeaders<'_>) -> Result<(Packet, &[u8]), DecodeError> {
    let net = headers.net.ok_or(DecodeError::NotTcp)?;
    let fragmented = match &net {
        NetHeaders::Ipv4(ip, _) => ip.is_fragmenting_payload(),
        NetHeaders::Ipv6(_, extensions) => extensions.is_fragmenting_payload(),
        NetHeaders::Arp(_) => return Err(DecodeError::NotTcp),
    };
    if fragmented {
        return Err(DecodeError::Fragment);
    }
    let Some(TransportHeader::Tcp(tcp)) = headers.transport else {
        return Err(DecodeError::NotTcp);
    };
    let payload = headers.payload.slice();
    let (src, dst, ecn) = check_sums(&net, &tcp, payload)?;
    let packet = Packet {
        src: Endpoint::new(src, tcp.source_port),
        dst: Endpoint::new(dst, tcp.destination_port),
        ecn,
        header: Header {
            seq: SeqNr(tcp.sequence_number),
            ack: SeqNr(tcp.acknowledgment_number),
            flags: flags_of(&tcp),
            window: tcp.window_size,
            options: options_of(&tcp)?,
        },
    };
    Ok((packet, payload))
}

/// Verifies checksums; gives the addresses and the ECN field.
fn check_sums(
    net: &NetHeaders,
    tcp: &TcpHeader,
    payload: &[u8],
) -> Result<(IpAddr, IpAddr, Ecn), DecodeError> {
    let (src, dst, ecn, sum) = match net {
        NetHeaders::Ipv4(ip, _) => {
            if ip.header_checksum != ip.calc_header_checksum() {
                return Err(DecodeError::IpChecksum);
            }
            let (src, dst) = (ip.source.into(), ip.destination.into());
            (
                src,
                dst,
                ecn_of(ip.ecn.value()),
                tcp.calc_checksum_ipv4(ip, payload),
            )
        }
        NetHeaders::Ipv6(ip, _) => {
            let (src, dst) = (ip.source.into(), ip.destination.into());
            (
                src,
                dst,
                ecn_of(ip.traffic_class),
                tcp.calc_checksum_ipv6(ip, payload),
            )
        }
        NetHeaders::Arp(_) => return Err(DecodeError::NotTcp),
    };
    match sum {
        Ok(sum) if sum == tcp.checksum => Ok((src, dst, ecn)),
        _ => Err(DecodeError::TcpChecksum),
    }
}

fn ecn_field(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::NotEct,
        Ecn::Capable1 => IpEcn::Ect1,
        Ecn::Capable0 => IpEcn::Ect0,
        Ecn::Congested => IpEcn::CongestionExperienced,
    }
}

/// The lower two bits of the traffic class (RFC 3168 5).
fn ecn_of(traffic_class: u8) -> Ecn {
    match traffic_class & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable0,
        _ => Ecn::Congested,
    }
}

fn flags_of(tcp: &TcpHeader) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::FIN, tcp.fin);
    flags.set(Flags::SYN, tcp.syn);
    flags.set(Flags::RST, tcp.rst);
    flags.set(Flags::PSH, tcp.psh);
    flags.set(Flags::ACK, tcp.ack);
    flags.set(Flags::URG, tcp.urg);
    flags.set(Flags::ECE, tcp.ece);
    flags.set(Flags::CWR, tcp.cwr);
    flags
}

/// Options that are not known are skipped by their length (RFC 9293 3.1).
fn options_of(tcp: &TcpHeader) -> Result<Options, DecodeError> {
    let mut options = Options::default();
    let mut rest = tcp.options.as_slice();
    while !rest.is_empty() {
        let mut elements = TcpOptionsIterator::from_slice(rest);
        match elements.next() {
            None => break,
            Some(Ok(element)) => {
                take_option(&mut options, element);
                rest = elements.rest();
            }
            Some(Err(TcpOptionReadError::UnknownId(_))) => {
                let len = rest
                    .get(1)
                    .copied()
                    .map(usize::from)
                    .filter(|&len| len >= 2);
                rest = len
                    .and_then(|len| rest.get(len..))
                    .ok_or(DecodeError::Malformed)?;
            }
            Some(Err(_)) => return Err(DecodeError::Malformed),
        }
    }
    Ok(options)
}

fn take_option(options: &mut Options, element: TcpOptionElement) {
    match element {
        TcpOptionElement::Noop => {}
        TcpOptionElement::MaximumSegmentSize(mss) => options.mss = Some(mss),
        TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift),
        TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
        TcpOptionElement::Timestamp(value, echo) => {
            options.timestamps = Some(Timestamps { value, echo })
        }
        TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
            let blocks = std::iter::once(first).chain(rest.into_iter().flatten());
            let blocks = blocks.map(|(start, end)| SackBlock {
                start: SeqNr(start),
                end: SeqNr(end),
            });
            options.sack = blocks.collect();
        }
    }
}

//! Parses TCP segments without copying them.

use crate::lower::pseudo_header;
use crate::options;
use crate::{Checksum, DecodeError, Ecn, Endpoint, Flags, Header, Packet, SeqNr};
use etherparse::{
    EtherType, Ethernet2HeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6ExtensionsSlice,
    Ipv6HeaderSlice, TcpHeaderSlice,
};
use std::net::IpAddr;

/// Offset of the control bits in a TCP header (RFC 9293 3.1). [`Flags`] has the same layout.
const TCP_FLAGS_AT: usize = 13;

/// Parses an Ethernet frame; returns the segment and its data. Padding after the packet is ignored.
///
/// # Errors
/// The frame does not contain a complete and valid TCP segment.
pub fn decode_frame(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    frame(bytes, Sum::Verified)
}

/// Works like [`decode_frame`], for frames whose TCP checksum may have been left to hardware.
///
/// # Errors
/// The frame does not contain a complete TCP segment.
pub fn decode_frame_unverified(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    frame(bytes, Sum::Unverified)
}

/// What happens to the checksum of TCP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Verified,
    Unverified,
}

fn frame(bytes: &[u8], sum: Sum) -> Result<(Packet, &[u8]), DecodeError> {
    let ethernet = Ethernet2HeaderSlice::from_slice(bytes).map_err(|_| DecodeError::Malformed)?;
    match ethernet.ether_type() {
        EtherType::IPV4 | EtherType::IPV6 => packet(&bytes[ethernet.slice().len()..], sum),
        _ => Err(DecodeError::NotTcp),
    }
}

/// Parses an IP packet; returns the segment and its data. Unknown options are skipped.
///
/// # Errors
/// The packet is not a complete and valid TCP segment.
pub fn decode_packet(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    packet(bytes, Sum::Verified)
}

fn packet(bytes: &[u8], sum: Sum) -> Result<(Packet, &[u8]), DecodeError> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => decode_v4(bytes, sum),
        Some(6) => decode_v6(bytes, sum),
        _ => Err(DecodeError::Malformed),
    }
}

fn decode_v4(bytes: &[u8], sum: Sum) -> Result<(Packet, &[u8]), DecodeError> {
    let ip = Ipv4HeaderSlice::from_slice(bytes).map_err(|_| DecodeError::Malformed)?;
    let carried = bytes
        .get(ip.slice().len()..usize::from(ip.total_len()))
        .ok_or(DecodeError::Malformed)?;
    if ip.is_fragmenting_payload() {
        return Err(DecodeError::Fragment);
    }
    if ip.protocol() != IpNumber::TCP {
        return Err(DecodeError::NotTcp);
    }
    if !Checksum::of_ipv4_header(&ip).is_right() {
        return Err(DecodeError::IpChecksum);
    }
    let (src, dst) = (ip.source_addr().into(), ip.destination_addr().into());
    let ecn = Ecn::of_traffic_class(ip.ecn().value());
    decode_carried((src, dst), ecn, carried, sum)
}

fn decode_v6(bytes: &[u8], sum: Sum) -> Result<(Packet, &[u8]), DecodeError> {
    let ip = Ipv6HeaderSlice::from_slice(bytes).map_err(|_| DecodeError::Malformed)?;
    let header_len = ip.slice().len();
    let mut carried = bytes
        .get(header_len..header_len + usize::from(ip.payload_length()))
        .ok_or(DecodeError::Malformed)?;
    let mut protocol = ip.next_header();
    if protocol != IpNumber::TCP {
        let (extensions, next, rest) = Ipv6ExtensionsSlice::from_slice(protocol, carried)
            .map_err(|_| DecodeError::Malformed)?;
        if extensions.is_fragmenting_payload() {
            return Err(DecodeError::Fragment);
        }
        (protocol, carried) = (next, rest);
    }
    if protocol != IpNumber::TCP {
        return Err(DecodeError::NotTcp);
    }
    let (src, dst) = (ip.source_addr().into(), ip.destination_addr().into());
    let ecn = Ecn::of_traffic_class(ip.traffic_class());
    decode_carried((src, dst), ecn, carried, sum)
}

fn decode_carried(
    (src, dst): (IpAddr, IpAddr),
    ecn: Ecn,
    carried: &[u8],
    sum: Sum,
) -> Result<(Packet, &[u8]), DecodeError> {
    let mut header = Header::default();
    let sum = (sum == Sum::Verified).then(|| pseudo_header(src, dst, IpNumber::TCP.0, 0));
    let tcp = decode_tcp(sum, carried, &mut header)?;
    let packet = Packet {
        src: Endpoint::new(src, tcp.src_port),
        dst: Endpoint::new(dst, tcp.dst_port),
        ecn,
        header,
    };
    Ok((packet, &carried[tcp.header_len..]))
}

/// Properties of a segment that are not in [`Header`].
#[derive(Clone, Copy, Debug)]
pub struct TcpPart {
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Length of the header, bytes: data starts after it.
    pub header_len: usize,
}

/// Parses the segment that an IP packet carries, and writes its header to `header`. `pseudo_header` is the sum of the packet's
/// pseudo-header with a length of zero; without it the checksum is not verified, as it may have been left to hardware.
///
/// # Errors
/// The data is not a valid TCP segment.
#[inline(always)]
pub fn decode_tcp(
    pseudo_header: Option<Checksum>,
    carried: &[u8],
    header: &mut Header,
) -> Result<TcpPart, DecodeError> {
    let tcp = TcpHeaderSlice::from_slice(carried).map_err(|_| DecodeError::Malformed)?;
    if let Some(sum) = pseudo_header {
        let len = u16::try_from(carried.len()).map_err(|_| DecodeError::Malformed)?;
        if !sum.add_u16(len).add_bytes(carried).is_right() {
            return Err(DecodeError::TcpChecksum);
        }
    }
    header.seq = SeqNr(tcp.sequence_number());
    header.ack = SeqNr(tcp.acknowledgment_number());
    header.flags = Flags::from_bits_retain(carried[TCP_FLAGS_AT]);
    header.window = tcp.window_size();
    options::read(tcp.options(), &mut header.options);
    header.options.urgent = tcp.urgent_pointer();
    Ok(TcpPart {
        src_port: tcp.source_port(),
        dst_port: tcp.destination_port(),
        header_len: tcp.slice().len(),
    })
}

//! TCP segments to bytes. A library lays out the headers below TCP; here are TCP's, and the checksum.

use crate::lower::{LowerHeaders, MOST_LOWER_LEN, ethernet_header};
use crate::options;
use crate::{Buffer, EncodeError, Head, Link, Packet};
use std::net::IpAddr;

/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: usize = 20;

/// Most bytes of all headers.
const MOST_HEADER_LEN: usize = MOST_LOWER_LEN + TCP_HEADER_LEN + options::MOST_LEN;

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
    let lower = LowerHeaders::new(Some(link), packet.src.addr, packet.dst.addr)?;
    encode_pieces(&lower, packet.head(), std::iter::once(payload), out)
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
    let lower = LowerHeaders::new(None, packet.src.addr, packet.dst.addr)?;
    encode_pieces(&lower, packet.head(), std::iter::once(payload), out)
}

/// Appends the header of an Ethernet frame that carries a packet from `src` to `out`.
pub fn encode_link(link: Link, src: IpAddr, out: &mut Vec<u8>) {
    out.extend_from_slice(&ethernet_header(link, src));
}

/// Appends a segment to `out`, after `lower` headers, which are those for its addresses. Its data lies in pieces, which are
/// copied once.
///
/// # Errors
/// When there is no such packet; then `out` is as it was.
pub fn encode_pieces<'a>(
    lower: &LowerHeaders,
    head: Head<'_>,
    pieces: impl Iterator<Item = &'a [u8]> + Clone,
    out: &mut impl Buffer,
) -> Result<(), EncodeError> {
    let options_len = head.header.options.len();
    if options_len > options::MOST_LEN {
        return Err(EncodeError::TooManyOptions(options_len));
    }
    let header_len = TCP_HEADER_LEN + options_len;
    let tcp_len = header_len + pieces.clone().map(<[u8]>::len).sum::<usize>();
    // All headers are put together first: one append costs less than many.
    let mut headers = [0; MOST_HEADER_LEN];
    let lower_part = headers.first_chunk_mut().expect("room for all headers");
    let pseudo_header = lower.write(tcp_len, head.ecn, lower_part)?;
    let tcp_part = headers[lower.len()..].first_chunk_mut();
    write_tcp_header(head, header_len, tcp_part.expect("room for all headers"));
    let start = out.len() + lower.len();
    out.make_room(lower.len() + tcp_len);
    out.append(&headers[..lower.len() + header_len]);
    for piece in pieces {
        out.append(piece);
    }
    let tcp = &mut out[start..];
    let checksum = pseudo_header.add_bytes(tcp).to_bytes();
    tcp[TCP_CHECKSUM_AT..TCP_CHECKSUM_AT + 2].copy_from_slice(&checksum);
    Ok(())
}

/// Writes a TCP header of this length, its checksum still zero (RFC 9293 3.1). TCP is Baton's own matter, and this is written
/// for each segment; so no library does it.
#[inline]
fn write_tcp_header(
    head: Head<'_>,
    header_len: usize,
    bytes: &mut [u8; TCP_HEADER_LEN + options::MOST_LEN],
) {
    let header = head.header;
    bytes[0..2].copy_from_slice(&head.src.port.to_be_bytes());
    bytes[2..4].copy_from_slice(&head.dst.port.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.seq.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&header.ack.0.to_be_bytes());
    bytes[12] = (header_len as u8 / 4) << 4;
    bytes[13] = header.flags.bits();
    bytes[14..16].copy_from_slice(&header.window.to_be_bytes());
    let room = bytes[TCP_HEADER_LEN..].first_chunk_mut();
    options::write(&header.options, room.expect("room for all options"));
}

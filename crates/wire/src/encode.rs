//! TCP segments to bytes. A library lays out the headers below TCP; here are TCP's, and the checksum.

use crate::lower::{LowerHeaders, ethernet_header};
use crate::options;
use crate::{Buffer, Checksum, EncodeError, Head, Link, Packet};
use std::net::IpAddr;

/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: usize = 20;

/// Most bytes of a TCP header.
pub(crate) const MOST_TCP_HEADER_LEN: usize = TCP_HEADER_LEN + options::MOST_LEN;

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
    let data_len = pieces.clone().map(<[u8]>::len).sum::<usize>();
    let tcp_len = lower.check_len(header_len + data_len)?;
    let start = out.len();
    out.make_room(lower.len() + usize::from(tcp_len));
    out.append(lower.with_room(header_len));
    // Data is summed where it lies: what was just written would have to be waited for.
    let (mut sum, mut len) = (Checksum::new(), 0);
    for piece in pieces {
        sum = sum.add_piece(piece, len);
        len += piece.len();
        out.append(piece);
    }
    let frame = &mut out[start..];
    let pseudo_header = lower.complete(tcp_len, head.ecn, frame);
    let header = &mut frame[lower.len()..][..header_len];
    let sum = sum.add(write_tcp_header(head, header)).add(pseudo_header);
    header[TCP_CHECKSUM_AT..TCP_CHECKSUM_AT + 2].copy_from_slice(&sum.to_bytes());
    Ok(())
}

/// Writes a TCP header, its checksum still zero (RFC 9293 3.1), to where it has its length, and gives its sum. TCP is Baton's
/// own matter, and this is written for each segment; so no library does it.
#[inline]
fn write_tcp_header(head: Head<'_>, bytes: &mut [u8]) -> Checksum {
    let header = head.header;
    let offset_and_flags = [(bytes.len() as u8 / 4) << 4, header.flags.bits()];
    let (fixed, room) = bytes
        .split_first_chunk_mut::<TCP_HEADER_LEN>()
        .expect("a TCP header has its fixed part");
    fixed[0..2].copy_from_slice(&head.src.port.to_be_bytes());
    fixed[2..4].copy_from_slice(&head.dst.port.to_be_bytes());
    fixed[4..8].copy_from_slice(&header.seq.0.to_be_bytes());
    fixed[8..12].copy_from_slice(&header.ack.0.to_be_bytes());
    fixed[12..14].copy_from_slice(&offset_and_flags);
    fixed[14..16].copy_from_slice(&header.window.to_be_bytes());
    Checksum::new()
        .add_u16(head.src.port)
        .add_u16(head.dst.port)
        .add_u32(header.seq.0)
        .add_u32(header.ack.0)
        .add_u16(u16::from_be_bytes(offset_and_flags))
        .add_u16(header.window)
        .add(options::write(&header.options, room))
}

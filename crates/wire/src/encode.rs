//! Encodes TCP segments. A library writes the headers below TCP; this module writes the TCP header and the checksum.

use crate::lower::{LowerHeaders, MOST_LEN, ethernet_header};
use crate::options;
use crate::{Buffer, Checksum, EncodeError, Flags, Head, Link, Packet};
use std::net::IpAddr;

/// Length of a TCP header without options, bytes.
const TCP_HEADER_LEN: usize = 20;

/// Maximum length of a TCP header, bytes.
pub(crate) const MOST_TCP_HEADER_LEN: usize = TCP_HEADER_LEN + options::MOST_LEN;

/// Offsets of fields in a TCP header (RFC 9293 3.1).
const TCP_SEQ_AT: usize = 4;
const TCP_FLAGS_AT: usize = 13;
const TCP_CHECKSUM_AT: usize = 16;

/// Appends an Ethernet frame, without padding and frame check sequence, to `out`.
///
/// # Errors
/// The packet cannot be encoded; then `out` is unchanged.
pub fn encode_frame(
    link: Link,
    packet: &Packet,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let lower = LowerHeaders::new(Some(link), packet.src.addr, packet.dst.addr)?;
    encode_pieces(&lower, packet.head(), std::iter::once(payload), out)
}

/// Appends an IP packet with correct checksums to `out`.
///
/// # Errors
/// The packet cannot be encoded; then `out` is unchanged.
pub fn encode_packet(
    packet: &Packet,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let lower = LowerHeaders::new(None, packet.src.addr, packet.dst.addr)?;
    encode_pieces(&lower, packet.head(), std::iter::once(payload), out)
}

/// Appends to `out` the header of an Ethernet frame that carries a packet from `src`.
pub fn encode_link(link: Link, src: IpAddr, out: &mut Vec<u8>) {
    out.extend_from_slice(&ethernet_header(link, src));
}

/// Appends a segment to `out`, after the `lower` headers, which must be those for its addresses. The pieces of its data are copied once.
///
/// # Errors
/// The packet cannot be encoded; then `out` is unchanged.
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
    let is_left = lower.leaves_checksum(data_len);
    // Sum the data at its source: reading what was just written would stall.
    let (mut sum, mut len) = (Checksum::new(), 0);
    for piece in pieces {
        if !is_left {
            sum = sum.add_piece(piece, len);
        }
        len += piece.len();
        out.append(piece);
    }
    let frame = &mut out[start..];
    let pseudo_header = lower.complete(tcp_len, head, frame);
    let header = &mut frame[lower.len()..][..header_len];
    let sum = sum.add(write_tcp_header(head, header)).add(pseudo_header);
    let checksum = match is_left {
        true => pseudo_header.to_partial_bytes(),
        false => sum.to_bytes(),
    };
    header[TCP_CHECKSUM_AT..TCP_CHECKSUM_AT + 2].copy_from_slice(&checksum);
    Ok(())
}

/// How a run of data is cut into segments, which differ only in sequence number, and in PSH of the last.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Number of segments.
    pub segments: u32,
    /// Length of the data of each segment, bytes.
    pub segment_len: usize,
    /// Whether the last segment carries PSH.
    pub pushes: bool,
}

/// Appends the segments of a run to `out`, each after the `lower` headers, and calls `end` after each. `head` is that of the first segment,
/// and `pieces` contain the data of all. Headers are written once; they differ in sequence number and checksum, and perhaps in PSH of the
/// last. Returns the length of each frame or packet in bytes.
///
/// # Errors
/// The packets cannot be encoded; then `out` is unchanged.
pub fn encode_run<'a, B: Buffer>(
    lower: &LowerHeaders,
    head: Head<'_>,
    cut: Cut,
    mut pieces: impl Iterator<Item = &'a [u8]>,
    out: &mut B,
    mut end: impl FnMut(&mut B),
) -> Result<usize, EncodeError> {
    let options_len = head.header.options.len();
    if options_len > options::MOST_LEN {
        return Err(EncodeError::TooManyOptions(options_len));
    }
    let header_len = TCP_HEADER_LEN + options_len;
    let tcp_len = lower.check_len(header_len + cut.segment_len)?;
    let (tcp_start, data_start) = (lower.len(), lower.len() + header_len);
    let mut headers = [0; MOST_LEN];
    let headers = &mut headers[..data_start];
    headers.copy_from_slice(lower.with_room(header_len));
    let pseudo_header = lower.complete(tcp_len, head, headers);
    let mut sum = write_tcp_header(head, &mut headers[tcp_start..]).add(pseudo_header);
    let is_left = lower.leaves_checksum(cut.segment_len);
    let mut seq = head.header.seq;
    let mut rest: &[u8] = &[];
    for number in 1..=cut.segments {
        if cut.pushes && number == cut.segments {
            headers[tcp_start + TCP_FLAGS_AT] |= Flags::PSH.bits();
            sum = sum.add_u16(Flags::PSH.bits().into());
        }
        headers[tcp_start + TCP_SEQ_AT..][..4].copy_from_slice(&seq.0.to_be_bytes());
        let start = out.len();
        out.make_room(data_start + cut.segment_len);
        out.append(headers);
        let (mut data, mut len) = (Checksum::new(), 0);
        while len < cut.segment_len {
            if rest.is_empty() {
                let Some(piece) = pieces.next() else {
                    debug_assert!(false, "there is data for all segments");
                    break;
                };
                rest = piece;
            }
            let (piece, after) = rest.split_at(rest.len().min(cut.segment_len - len));
            if !is_left {
                data = data.add_piece(piece, len);
            }
            out.append(piece);
            (rest, len) = (after, len + piece.len());
        }
        let checksum = match is_left {
            true => pseudo_header.to_partial_bytes(),
            false => sum.add(data).to_bytes(),
        };
        let at = start + tcp_start + TCP_CHECKSUM_AT;
        out[at..at + 2].copy_from_slice(&checksum);
        end(out);
        // Ones' complement: adding the complement of the old number removes that number from the sum (RFC 1624 2).
        let next = seq + cut.segment_len as u32;
        sum = sum.add_u32(!seq.0).add_u32(next.0);
        seq = next;
    }
    Ok(data_start + cut.segment_len)
}

/// Writes a TCP header with a checksum of zero (RFC 9293 3.1) to `bytes`, which has the header's length, and returns its sum. No library is
/// used because TCP is Baton's own subject, and this runs for each segment.
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
    fixed[18..20].copy_from_slice(&header.options.urgent.to_be_bytes());
    Checksum::new()
        .add_u16(head.src.port)
        .add_u16(head.dst.port)
        .add_u32(header.seq.0)
        .add_u32(header.ack.0)
        .add_u16(u16::from_be_bytes(offset_and_flags))
        .add_u16(header.window)
        .add_u16(header.options.urgent)
        .add(options::write(&header.options, room))
}

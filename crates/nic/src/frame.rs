//! The MAC: packets as bytes.

use baton_tcp::Segment;
use baton_wire::{Buffer, EncodeError, Head, Link, LowerHeaders, encode_pieces};
use bytes::Bytes;

/// Appends the frame of `segment` to `out`. The NIC computes the checksums, over what it really sends: a host that sends from the
/// cache never sees the data go out.
///
/// # Errors
/// When there is no such frame; then `out` is as it was.
pub fn write_frame(segment: &Segment<Bytes>, out: &mut impl Buffer) -> Result<(), EncodeError> {
    let (src, dst) = (segment.src, segment.dst);
    let link = Link::between(src.addr, dst.addr);
    let lower = LowerHeaders::new(Some(link), src.addr, dst.addr)?;
    let head = Head {
        src,
        dst,
        ecn: segment.ecn,
        header: &segment.header,
    };
    encode_pieces(
        &lower,
        head,
        segment.payload.iter().map(|piece| &piece[..]),
        out,
    )
}

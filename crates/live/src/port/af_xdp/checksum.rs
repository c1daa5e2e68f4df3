//! Completes TCP checksums that the kernel has left to hardware: within a machine nothing computes them. A packet socket is informed about
//! such frames; an AF_XDP socket is not, and has to detect them. Their checksum field contains the sum of the pseudo header, without the
//! segment.

use baton_wire::Checksum;
use std::ops::Range;

const ETHERNET_BYTES: usize = 14;
const TCP: u8 = 6;
/// Offset of the checksum field in a TCP header.
const FIELD: usize = 16;

/// Computes the checksum of a TCP segment if it was left to hardware; returns whether it was. The payload is read only if the field has the
/// value that it would have in that case, which happens by chance in one of 65,536 finished segments.
pub(super) fn finish(frame: &mut [u8]) -> bool {
    let Some((pseudo, place)) = tcp_of(frame) else {
        return false;
    };
    let Some(segment) = frame.get_mut(place) else {
        return false;
    };
    let Some(field) = segment.get(FIELD..FIELD + 2) else {
        return false;
    };
    let [high, low] = pseudo.to_bytes();
    // The field of a finished segment is the complement of a sum; here it would be the sum itself.
    if *field != [!high, !low] {
        return false;
    }
    let rest = Checksum::new().add_bytes(segment).to_bytes();
    if pseudo.add_u16(!u16::from_be_bytes(rest)).is_right() {
        return false;
    }
    segment[FIELD..FIELD + 2].copy_from_slice(&rest);
    true
}

/// Returns the sum of the pseudo header, and the range of the segment, if the packet is complete and has no extension headers.
fn tcp_of(frame: &[u8]) -> Option<(Checksum, Range<usize>)> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    let (addresses, start, end) = match *ethernet.last_chunk()? {
        [0x08, 0x00] => {
            let (length, fragment) = (packet.get(2..4)?, packet.get(6..8)?);
            let is_whole = fragment[0] & 0x3f == 0 && fragment[1] == 0;
            if !is_whole || *packet.get(9)? != TCP {
                return None;
            }
            let header = usize::from(packet[0] & 0x0f) * 4;
            let end = usize::from(u16::from_be_bytes(length.try_into().ok()?));
            (packet.get(12..20)?, header, end)
        }
        [0x86, 0xdd] => {
            if *packet.get(6)? != TCP {
                return None;
            }
            let length = usize::from(u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?));
            (packet.get(8..40)?, 40, 40 + length)
        }
        _ => return None,
    };
    let pseudo = Checksum::new()
        .add_bytes(addresses)
        .add_u16(u16::from(TCP))
        .add_u16(end.checked_sub(start)? as u16);
    Some((pseudo, ETHERNET_BYTES + start..ETHERNET_BYTES + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an IPv4 and an IPv6 segment with 40 bytes of data; `field` computes the checksum field from the sum of the pseudo header.
    fn segments(field: impl Fn(Checksum, &[u8]) -> [u8; 2]) -> [Vec<u8>; 2] {
        let mut segment = [0_u8; 60];
        for (at, byte) in segment.iter_mut().enumerate() {
            *byte = 7 * at as u8;
        }
        segment[FIELD..FIELD + 2].fill(0);
        let mut ipv4 = vec![0; ETHERNET_BYTES];
        ipv4[12..].copy_from_slice(&[0x08, 0x00]);
        ipv4.extend([0x45, 0, 0, 80, 1, 2, 0x40, 0, 64, TCP, 0, 0]);
        ipv4.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let mut ipv6 = vec![0; ETHERNET_BYTES];
        ipv6[12..].copy_from_slice(&[0x86, 0xdd]);
        ipv6.extend([0x60, 0, 0, 0, 0, 60, TCP, 64]);
        ipv6.extend((0..32).map(|byte| byte * 3));
        [ipv4, ipv6].map(|mut frame| {
            frame.extend(segment);
            let (pseudo, _) = tcp_of(&frame).expect("a segment");
            let start = frame.len() - segment.len() + FIELD;
            let bytes = field(pseudo, &segment);
            frame[start..start + 2].copy_from_slice(&bytes);
            frame
        })
    }

    #[test]
    fn a_checksum_of_only_the_pseudo_header_is_completed() {
        let of_kernel = |pseudo: Checksum, _: &[u8]| pseudo.to_bytes().map(|byte| !byte);
        let of_wire = segments(|pseudo, segment| pseudo.add_bytes(segment).to_bytes());
        for (frame, finished) in segments(of_kernel).into_iter().zip(of_wire) {
            // Padding after the packet does not change the result.
            for padding in [0, 6] {
                let [mut frame, finished] =
                    [&frame, &finished].map(|bytes| [&bytes[..], &[9; 6][..padding]].concat());
                assert!(finish(&mut frame));
                assert_eq!(frame, finished);
                assert!(!finish(&mut frame), "once is enough");
            }
        }
    }

    #[test]
    fn complete_and_wrong_checksums_are_left_to_the_engine() {
        for mut frame in segments(|pseudo, segment| pseudo.add_bytes(segment).to_bytes()) {
            assert!(!finish(&mut frame));
        }
        for mut frame in segments(|_, _| [0x12, 0x34]) {
            assert!(!finish(&mut frame));
        }
    }

    #[test]
    fn a_complete_checksum_equal_to_the_pseudo_headers_is_recognised() {
        // Choose the last two bytes of the data so that the whole sum equals that of the pseudo header.
        for mut frame in segments(|pseudo, _| pseudo.to_bytes().map(|byte| !byte)) {
            let end = frame.len();
            frame[end - 2..].fill(0);
            let (pseudo, place) = tcp_of(&frame).expect("a segment");
            let rest = pseudo.add_bytes(&frame[place]).to_bytes();
            frame[end - 2..].copy_from_slice(&rest);
            assert!(!finish(&mut frame));
        }
    }

    #[test]
    fn truncated_frames_are_not_segments() {
        for mut frame in segments(|pseudo, _| pseudo.to_bytes().map(|byte| !byte)) {
            for len in 0..frame.len() {
                assert!(!finish(&mut frame[..len]), "{len} bytes");
            }
        }
    }
}

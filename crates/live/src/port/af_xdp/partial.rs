//! Frames whose checksum was left to hardware. A packet socket is told; an AF_XDP socket is not, and has to look: where a kernel leaves
//! a TCP checksum to hardware, the field has the sum of the pseudo header, to which the rest would be added.

use baton_wire::Checksum;

const ETHERNET_BYTES: usize = 14;
const TCP: u8 = 6;
/// Where the field is in a TCP header.
const FIELD: usize = 16;

/// Whether this is a TCP segment whose checksum was not computed yet. The payload is looked at only if the field is what it would be
/// then, which is by chance in one of 65,536 finished segments.
pub(super) fn is_checksum_partial(frame: &[u8]) -> bool {
    let Some((pseudo, segment)) = tcp_of(frame) else {
        return false;
    };
    let Some(field) = segment.get(FIELD..FIELD + 2) else {
        return false;
    };
    let [high, low] = pseudo.to_bytes();
    // A finished field is the complement of a sum, this one the sum itself.
    *field == [!high, !low] && !pseudo.add_bytes(segment).is_right()
}

/// The sum of the pseudo header and the segment behind it, of a whole packet without extension headers.
fn tcp_of(frame: &[u8]) -> Option<(Checksum, &[u8])> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    let (addresses, segment) = match *ethernet.last_chunk()? {
        [0x08, 0x00] => {
            let (length, fragment) = (packet.get(2..4)?, packet.get(6..8)?);
            let is_whole = fragment[0] & 0x3f == 0 && fragment[1] == 0;
            if !is_whole || *packet.get(9)? != TCP {
                return None;
            }
            let header = usize::from(packet[0] & 0x0f) * 4;
            let end = usize::from(u16::from_be_bytes(length.try_into().ok()?));
            (packet.get(12..20)?, packet.get(header..end)?)
        }
        [0x86, 0xdd] => {
            if *packet.get(6)? != TCP {
                return None;
            }
            let length = usize::from(u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?));
            (packet.get(8..40)?, packet.get(40..40 + length)?)
        }
        _ => return None,
    };
    let pseudo = Checksum::new()
        .add_bytes(addresses)
        .add_u16(u16::from(TCP))
        .add_u16(segment.len() as u16);
    Some((pseudo, segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 and an IPv6 segment of 40 bytes of data; the field is as `field` makes it of the pseudo header's sum.
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
    fn a_field_that_has_the_pseudo_headers_sum_is_not_finished() {
        let of_kernel = |pseudo: Checksum, _: &[u8]| pseudo.to_bytes().map(|byte| !byte);
        for frame in segments(of_kernel) {
            assert!(is_checksum_partial(&frame));
            // Padding behind the packet does not change it.
            assert!(is_checksum_partial(&[&frame[..], &[0; 6]].concat()));
        }
    }

    #[test]
    fn finished_and_wrong_checksums_are_left_to_the_engine() {
        for frame in segments(|pseudo, segment| pseudo.add_bytes(segment).to_bytes()) {
            assert!(!is_checksum_partial(&frame));
        }
        for frame in segments(|_, _| [0x12, 0x34]) {
            assert!(!is_checksum_partial(&frame));
        }
    }

    #[test]
    fn a_finished_checksum_that_looks_like_the_other_is_told_apart() {
        // Two bytes of the data make the whole sum that of the pseudo header.
        for mut frame in segments(|pseudo, _| pseudo.to_bytes().map(|byte| !byte)) {
            let end = frame.len();
            frame[end - 2..].fill(0);
            let (pseudo, segment) = tcp_of(&frame).expect("a segment");
            let rest = pseudo.add_bytes(segment).to_bytes();
            frame[end - 2..].copy_from_slice(&rest);
            assert!(!is_checksum_partial(&frame));
        }
    }

    #[test]
    fn what_is_cut_off_is_no_segment() {
        for frame in segments(|pseudo, _| pseudo.to_bytes().map(|byte| !byte)) {
            for len in 0..frame.len() {
                assert!(!is_checksum_partial(&frame[..len]), "{len} bytes");
            }
        }
    }
}

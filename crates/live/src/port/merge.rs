//! Merges runs of segments that can be passed to the kernel as one packet: the inverse of segmentation offload. A TAP device or packet
//! socket with a virtual header (struct virtio_net_hdr of the virtio specification, 5.1.6) accepts up to 64 KiB as one packet with the size
//! at which it may be cut, so that a run costs one system call and one pass through the kernel's receive path.
//!
//! Segments are merged only if they can be restored byte for byte: same addresses, ports, acknowledgment, window, options and flags;
//! sequence numbers without a gap; all segments but the last of one size.

/// Length of the virtual header, bytes.
pub(super) const VIRTUAL_HEADER_BYTES: usize = 10;
/// Length of an Ethernet header, bytes.
const ETHERNET_BYTES: usize = 14;
/// Maximum length of the headers before the data: Ethernet, IPv6 without extensions, TCP with all its options.
const MOST_HEADER_BYTES: usize = ETHERNET_BYTES + 40 + 60;
/// Maximum length of a merged frame, so that its IP packet does not exceed 65,535 bytes either. Normally the kernel would cut packets whose
/// length reaches the interface's maximum (`gso_max_size`), but for a socket that bypasses the queueing discipline it fails with ENOBUFS,
/// each time.
const LONGEST_FRAME: usize = 65_535;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Positions of the parts of a segment with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    version: u8,
    tcp: usize,
    data: usize,
    data_len: usize,
    seq: u32,
    pushed: bool,
}

/// The number of frames at the front that form one run, and the headers to send them with, virtual header first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    headers: [u8; VIRTUAL_HEADER_BYTES + MOST_HEADER_BYTES],
    headers_len: usize,
    /// Number of frames in the run.
    pub(super) frames: usize,
    /// Offset of the data in each frame; 0 for a single frame, which is sent unchanged.
    pub(super) data: usize,
}

impl Run {
    /// Returns the run at the front, or `None` if there are no frames.
    pub(super) fn at_front<'a>(mut frames: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let first = frames.next()?;
        let mut run = Self {
            headers: [0; VIRTUAL_HEADER_BYTES + MOST_HEADER_BYTES],
            headers_len: VIRTUAL_HEADER_BYTES,
            frames: 1,
            data: 0,
        };
        let Some((parts, flags)) = Parts::located(first) else {
            return Some(run);
        };
        if flags & !PSH != ACK {
            run.mark_unfinished(first, &parts);
            return Some(run);
        }
        let mut last = parts;
        let mut total = parts.data_len;
        for frame in frames {
            let Some(next) = Parts::of(frame) else { break };
            let fits = parts.data + total + next.data_len <= LONGEST_FRAME;
            if !fits || !last.is_followed_by(&next, parts.data_len, first, frame) {
                break;
            }
            last = next;
            total += next.data_len;
            run.frames += 1;
        }
        match run.frames {
            1 => run.mark_unfinished(first, &parts),
            _ => run.write_headers(first, &parts, &last, total),
        }
        Some(run)
    }

    /// Returns the headers that precede the data of the first frame.
    pub(super) fn headers(&self) -> &[u8] {
        &self.headers[..self.headers_len]
    }

    /// Asks for the checksum of a single segment if its field has only the sum of the pseudo-header. If that happens to be the right checksum, the
    /// result is the same.
    fn mark_unfinished(&mut self, frame: &[u8], parts: &Parts) {
        let pseudo = parts.pseudo_header(frame, frame.len() - parts.tcp);
        if frame[parts.tcp + 16..parts.tcp + 18] != pseudo.to_be_bytes() {
            return;
        }
        // VIRTIO_NET_HDR_F_NEEDS_CSUM.
        self.headers[0] = 1;
        self.write_fields([(2, parts.data), (6, parts.tcp), (8, 16)]);
    }

    /// Writes fields of the virtual header.
    fn write_fields<const N: usize>(&mut self, fields: [(usize, usize); N]) {
        for (at, value) in fields {
            self.headers[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
        }
    }

    fn write_headers(&mut self, first: &[u8], parts: &Parts, last: &Parts, total: usize) {
        self.data = parts.data;
        self.headers_len = VIRTUAL_HEADER_BYTES + parts.data;
        let (virtual_header, headers) = self.headers.split_at_mut(VIRTUAL_HEADER_BYTES);
        let headers = &mut headers[..parts.data];
        headers.copy_from_slice(&first[..parts.data]);
        let tcp_len = parts.data - parts.tcp + total;
        let ip = &mut headers[ETHERNET_BYTES..parts.tcp];
        match parts.version {
            4 => {
                let len = ip.len() + tcp_len;
                ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                ip[10..12].fill(0);
                let checksum = !folded(sum(ip));
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            _ => ip[4..6].copy_from_slice(&(tcp_len as u16).to_be_bytes()),
        }
        // The field contains only the pseudo-header (RFC 9293 3.1); the device or the receiver adds the rest if needed.
        let pseudo = parts.pseudo_header(headers, tcp_len);
        let tcp = &mut headers[parts.tcp..];
        tcp[16..18].copy_from_slice(&pseudo.to_be_bytes());
        if last.pushed {
            tcp[13] |= PSH;
        }
        let segmentation = if parts.version == 4 { 1 } else { 4 };
        // VIRTIO_NET_HDR_F_NEEDS_CSUM, and VIRTIO_NET_HDR_GSO_TCPV4 or _TCPV6.
        virtual_header[..2].copy_from_slice(&[1, segmentation]);
        self.write_fields([
            (2, parts.data),
            (4, parts.data_len),
            (6, parts.tcp),
            (8, 16),
        ]);
    }
}

impl Parts {
    /// Parses a frame; returns `None` unless it is a segment with data and no flags other than ACK and PSH.
    fn of(frame: &[u8]) -> Option<Self> {
        let (parts, flags) = Self::located(frame)?;
        (flags & !PSH == ACK).then_some(parts)
    }

    /// Returns the folded sum of the pseudo-header (RFC 9293 3.1) of a segment of `tcp_len` bytes with the headers of `frame`.
    fn pseudo_header(&self, frame: &[u8], tcp_len: usize) -> u16 {
        let addresses = match self.version {
            4 => &frame[ETHERNET_BYTES + 12..][..8],
            _ => &frame[ETHERNET_BYTES + 8..][..32],
        };
        folded(sum(addresses) + 6 + tcp_len as u32)
    }

    /// Parses a frame; returns its parts and flags, or `None` unless it is a segment with data.
    fn located(frame: &[u8]) -> Option<(Self, u8)> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        let (version, ip_len) = match (u16::from_be_bytes([frame[12], frame[13]]), *ip.first()?) {
            (0x0800, 0x45) => (4, 20),
            (0x86dd, first) if first >> 4 == 6 => (6, 40),
            _ => return None,
        };
        let tcp = ip.get(ip_len..)?;
        let is_tcp = match version {
            // Fragments are excluded too.
            4 => ip[9] == 6 && ip[6] & 0x3f == 0 && ip[7] == 0,
            _ => ip[6] == 6,
        };
        let packet_len = match version {
            4 => usize::from(u16::from_be_bytes([ip[2], ip[3]])),
            _ => ip_len + usize::from(u16::from_be_bytes([ip[4], ip[5]])),
        };
        if !is_tcp || packet_len != ip.len() || tcp.len() < 20 {
            return None;
        }
        let header_len = usize::from(tcp[12] >> 4) * 4;
        let flags = tcp[13];
        if header_len < 20 || header_len >= tcp.len() {
            return None;
        }
        let parts = Self {
            version,
            tcp: ETHERNET_BYTES + ip_len,
            data: ETHERNET_BYTES + ip_len + header_len,
            data_len: tcp.len() - header_len,
            seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            pushed: flags & PSH != 0,
        };
        Some((parts, flags))
    }

    /// Returns whether `next`, the parts of `frame`, continues this segment, in a run of segments of `size` that began with `first`.
    fn is_followed_by(&self, next: &Self, size: usize, first: &[u8], frame: &[u8]) -> bool {
        let same = |from: usize, to: usize| first[from..to] == frame[from..to];
        let tcp = self.tcp;
        let ip_is_same = match self.version {
            // Everything except length, identification and checksum.
            4 => same(14, 16) && same(20, 24) && same(26, 34),
            _ => same(14, 18) && same(20, 54),
        };
        next.version == self.version
            && next.data == self.data
            && !self.pushed
            && self.data_len == size
            && next.data_len <= size
            && next.seq == self.seq.wrapping_add(self.data_len as u32)
            && same(0, 14)
            && ip_is_same
            && same(tcp, tcp + 4)
            // Acknowledgment and header length; window; urgent pointer and options.
            && same(tcp + 8, tcp + 13)
            && same(tcp + 14, tcp + 16)
            && same(tcp + 18, self.data)
    }
}

/// Returns the sum of 16-bit words for a checksum (RFC 1071); the number of bytes must be even.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::{
        Ecn, Endpoint, Flags, Header, Link, LowerHeaders, Options, Packet, SeqNr, Timestamps,
        decode_frame, encode_frame, encode_pieces,
    };
    use std::net::IpAddr;

    fn packet(addrs: [&str; 2], seq: u32) -> Packet {
        let [src, dst] = addrs.map(|addr| addr.parse::<IpAddr>().expect("an address"));
        Packet {
            src: Endpoint::new(src, 80),
            dst: Endpoint::new(dst, 50_000),
            ecn: Ecn::NotCapable,
            header: Header {
                seq: SeqNr(seq),
                ack: SeqNr(7),
                flags: Flags::ACK,
                window: 500,
                options: Options {
                    timestamps: Some(Timestamps { value: 1, echo: 2 }),
                    ..Options::default()
                },
            },
        }
    }

    fn frame(packet: &Packet, data: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let link = Link::between(packet.src.addr, packet.dst.addr);
        encode_frame(link, packet, data, &mut frame).expect("a frame");
        frame
    }

    const V4: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
    const V6: [&str; 2] = ["fd00::1", "fd00::2"];

    fn run_of(frames: &[Vec<u8>]) -> Run {
        Run::at_front(frames.iter().map(Vec::as_slice)).expect("a frame")
    }

    #[test]
    fn a_run_is_one_segment_with_all_its_data() {
        for addrs in [V4, V6] {
            let data: Vec<u8> = (0..3500_u32).map(|index| index as u8).collect();
            let start = u32::MAX - 1500;
            let mut frames: Vec<Vec<u8>> = Vec::new();
            for (index, piece) in data.chunks(1000).enumerate() {
                let mut packet = packet(addrs, start.wrapping_add(1000 * index as u32));
                packet.header.flags.set(Flags::PSH, piece.len() < 1000);
                frames.push(frame(&packet, piece));
            }
            let run = run_of(&frames);
            assert_eq!(run.frames, 4);
            let (virtual_header, headers) = run.headers().split_at(VIRTUAL_HEADER_BYTES);
            let kind = if addrs == V4 { 1 } else { 4 };
            assert_eq!(virtual_header[..2], [1, kind]);
            let size = u16::from_ne_bytes([virtual_header[4], virtual_header[5]]);
            assert_eq!(size, 1000);
            let mut whole = headers.to_vec();
            for frame in &frames {
                whole.extend_from_slice(&frame[run.data..]);
            }
            // The field contains the sum of the pseudo-header; together with the rest it makes a correct checksum.
            let tcp = usize::from(u16::from_ne_bytes([virtual_header[6], virtual_header[7]]));
            let checksum = !folded(sum(&whole[tcp..]));
            whole[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
            let (read, content) = decode_frame(&whole).expect("a segment");
            let mut expected = packet(addrs, start);
            expected.header.flags |= Flags::PSH;
            assert_eq!(read, expected);
            assert_eq!(content, data);
        }
    }

    #[test]
    fn checksums_that_are_left_to_the_device_are_asked_for() {
        for (addrs, flags, len) in [
            (V4, Flags::ACK, 1000),
            (V6, Flags::ACK, 1000),
            (V4, Flags::ACK | Flags::FIN, 999),
            (V4, Flags::ACK, 10),
        ] {
            let (mut packet, mut frame) = (packet(addrs, 7), Vec::new());
            packet.header.flags = flags;
            let (src, dst) = (packet.src.addr, packet.dst.addr);
            let lower = LowerHeaders::new(Some(Link::between(src, dst)), src, dst);
            let lower = lower.expect("one version").leaving_checksums(true);
            let data = vec![3; len];
            let pieces = std::iter::once(data.as_slice());
            encode_pieces(&lower, packet.head(), pieces, &mut frame).expect("a frame");
            let run = run_of(std::slice::from_ref(&frame));
            let header = run.headers();
            assert_eq!(header[..2], [u8::from(len > 10), 0], "{flags:?} {len}");
            if len > 10 {
                let field =
                    |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
                let (start, at) = (field(6), field(6) + field(8));
                let mut segment = frame[start..].to_vec();
                segment.resize(segment.len().next_multiple_of(2), 0);
                frame[at..at + 2].copy_from_slice(&(!folded(sum(&segment))).to_be_bytes());
            }
            assert_eq!(decode_frame(&frame), Ok((packet, &data[..])));
        }
    }

    #[test]
    fn segments_that_differ_are_not_merged() {
        let first = packet(V4, 0);
        let changes: [fn(&mut Packet); 9] = [
            |next| next.header.seq = SeqNr(1001),
            |next| next.header.ack = SeqNr(8),
            |next| next.header.window = 501,
            |next| next.header.flags |= Flags::FIN,
            |next| next.header.flags |= Flags::CWR,
            |next| next.header.options.timestamps = Some(Timestamps { value: 2, echo: 2 }),
            |next| next.header.options.timestamps = None,
            |next| next.dst.port = 50_001,
            |next| next.ecn = Ecn::Capable0,
        ];
        let data = [1; 1000];
        let plain = packet(V4, 1000);
        assert_eq!(
            run_of(&[frame(&first, &data), frame(&plain, &data)]).frames,
            2
        );
        for change in changes {
            let mut next = plain.clone();
            change(&mut next);
            assert_eq!(
                run_of(&[frame(&first, &data), frame(&next, &data)]).frames,
                1
            );
        }
        // Not merged: a larger segment, one after a shorter one, one after a push, one without data, a frame that is not a segment.
        assert_eq!(
            run_of(&[frame(&first, &data), frame(&plain, &[1; 1001])]).frames,
            1
        );
        let short = [
            frame(&first, &data),
            frame(&plain, &[1; 10]),
            frame(&packet(V4, 1010), &data),
        ];
        assert_eq!(run_of(&short).frames, 2);
        let mut pushed = first.clone();
        pushed.header.flags |= Flags::PSH;
        assert_eq!(
            run_of(&[frame(&pushed, &data), frame(&plain, &data)]).frames,
            1
        );
        assert_eq!(
            run_of(&[frame(&first, &[]), frame(&packet(V4, 0), &data)]).frames,
            1
        );
        assert_eq!(run_of(&[vec![1; 42], frame(&first, &data)]).frames, 1);
        let single = run_of(&[frame(&first, &data)]);
        assert_eq!(single.headers(), [0; VIRTUAL_HEADER_BYTES]);
    }

    #[test]
    fn a_run_is_no_longer_than_a_packet_can_be() {
        let frames: Vec<Vec<u8>> = (0..70)
            .map(|index| frame(&packet(V4, 1448 * index), &[0; 1448]))
            .collect();
        assert_eq!(run_of(&frames).frames, 45);
        // The kernel would refuse a packet as long as the interface's maximum, the Ethernet header included.
        let whole = frames[0].len() + 44 * 1448;
        for (frame_bytes, merged) in [(65_535, 46), (65_536, 45)] {
            let last = frame(&packet(V4, 45 * 1448), &vec![0; frame_bytes - whole]);
            assert_eq!(run_of(&[&frames[..45], &[last]].concat()).frames, merged);
        }
    }
}

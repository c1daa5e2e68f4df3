//! Captures created by the tests, and their analysis.

use super::*;
use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::time::Duration;

/// Time in milliseconds, whether the client sent the segment, flags, sequence number, acknowledgment number, data bytes.
type Line = (u64, bool, &'static str, u32, u32, usize);

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

/// A complete connection: a request of 100 bytes and a response of 3000, some of them retransmitted; sequence numbers wrap around.
const WHOLE: [Line; 10] = [
    (0, true, "S", 1000, 0, 0),
    (1, false, "SA", 4_294_967_000, 1001, 0),
    (2, true, "A", 1001, 4_294_967_001, 0),
    (2, true, "A", 1001, 4_294_967_001, 100),
    (5, false, "A", 4_294_967_001, 1101, 1500),
    (9, false, "A", 4_294_967_001, 1101, 1500),
    (12, false, "A", 1205, 1101, 1500),
    (13, true, "A", 1101, 2705, 0),
    (14, false, "FA", 2705, 1101, 0),
    (20, true, "FA", 1101, 2706, 0),
];

fn ip_packet(line: &Line) -> Vec<u8> {
    let &(_, from_client, flags, seq, ack, bytes) = line;
    let ((from, from_port), (to, to_port)) = if from_client {
        (CLIENT, SERVER)
    } else {
        (SERVER, CLIENT)
    };
    let mut builder = PacketBuilder::ipv4(from, to, 64).tcp(from_port, to_port, seq, 1000);
    for flag in flags.chars() {
        builder = match flag {
            'S' => builder.syn(),
            'F' => builder.fin(),
            'R' => builder.rst(),
            _ => builder.ack(ack),
        };
    }
    // A timestamps option, which is cut off where only 40 bytes are captured.
    let builder = builder
        .options_raw(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1])
        .expect("an option");
    let mut packet = Vec::new();
    builder
        .write(&mut packet, &vec![b'x'; bytes])
        .expect("a packet");
    packet
}

/// Creates ERF records of ATM cells, with the first 40 bytes of each packet.
fn erf(lines: &[Line]) -> Vec<u8> {
    let mut file = Vec::new();
    for line in lines {
        let ms = line.0;
        let fraction = ((ms % 1000) << 32) / 1000 + 1;
        let time = ((950_000_000 + ms / 1000) << 32) + fraction;
        file.extend_from_slice(&time.to_le_bytes());
        file.extend_from_slice(&[3, 1, 0, 80, 0, 0, 0, 53]);
        file.extend_from_slice(&[0, 160, 6, 112, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        file.extend_from_slice(&ip_packet(line)[..40]);
        file.extend_from_slice(&[0; 12]);
    }
    file
}

/// Creates a pcap file with the packets in Ethernet frames.
fn pcap(lines: &[Line], kept_bytes: usize, endianness: Endianness) -> Vec<u8> {
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::NanoSecond,
        endianness,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).expect("a header");
    for line in lines {
        let mut frame = vec![2; 12];
        frame.extend_from_slice(&[8, 0]);
        frame.extend_from_slice(&ip_packet(line));
        let kept = &frame[..frame.len().min(kept_bytes)];
        let time = Duration::from_millis(950_000_000_000 + line.0);
        let packet = PcapPacket::new(time, frame.len() as u32, kept);
        writer.write_packet(&packet).expect("a packet");
    }
    writer.into_writer()
}

/// Creates a pcapng file with the packets as raw IP, at a resolution of 2^-10 seconds.
fn pcapng(lines: &[Line]) -> Vec<u8> {
    let mut writer = PcapNgWriter::new(Vec::new()).expect("a header");
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![InterfaceDescriptionOption::IfTsResol(0x80 | 10)],
    };
    writer.write_pcapng_block(interface).expect("an interface");
    for line in lines {
        let packet = ip_packet(line);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos((950_000_000 << 10) + line.0 * 1024 / 1000),
            original_len: packet.len() as u32,
            data: packet.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).expect("a packet");
    }
    writer.into_inner()
}

fn analyse(file: &[u8]) -> CaptureAnalysis {
    CaptureAnalysis::from_reader(Path::new("x"), file).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(file: &[u8]) -> String {
    let error = CaptureAnalysis::from_reader(Path::new("x"), file);
    error.expect_err("no capture").to_string()
}

#[test]
fn a_whole_connection_is_the_same_in_every_format() {
    let files = [
        (CaptureFormat::Erf, erf(&WHOLE), 19),
        (CaptureFormat::Pcap, pcap(&WHOLE, 2000, Endianness::Big), 20),
        (
            CaptureFormat::Pcap,
            pcap(&WHOLE, 54, Endianness::Little),
            20,
        ),
        (CaptureFormat::Pcapng, pcapng(&WHOLE), 19),
    ];
    for (format, file, ms) in files {
        let found = analyse(&file);
        assert_eq!(found.format, format);
        assert_eq!((found.packets.all, found.packets.tcp), (10, 10));
        let counts = ConnectionCounts {
            all: 1,
            whole: 1,
            ..ConnectionCounts::default()
        };
        assert_eq!(found.connections, counts);
        // Times are truncated to the unit of the file.
        assert!((ms..=20).contains(&found.lifetime_ms.max), "{format:?}");
        assert_eq!(
            (found.client_bytes.max, found.server_bytes.max),
            (100, 3000)
        );
        assert_eq!(found.lifetimes.packets.max, 10);
        let is_cut = |limit: &String| limit.contains("captured in part");
        assert_eq!(found.packets.truncated > 0, found.limits.iter().any(is_cut));
        assert_eq!(found.first_us / 1_000_000, 950_000_000);
    }
}

#[test]
fn bytes_of_an_uncaptured_end_follow_from_acknowledgments() {
    let client: Vec<Line> = WHOLE.into_iter().filter(|line| line.1).collect();
    let found = analyse(&pcap(&client, 60, Endianness::Little));
    assert_eq!((found.connections.one_way, found.connections.whole), (1, 1));
    // One more for the FIN.
    assert_eq!(
        (found.client_bytes.max, found.server_bytes.max),
        (100, 3001)
    );
    assert!(
        found
            .limits
            .iter()
            .any(|limit| limit.contains("in one direction only"))
    );
    let server: Vec<Line> = WHOLE.into_iter().filter(|line| !line.1).collect();
    let found = analyse(&pcap(&server, 60, Endianness::Little));
    assert_eq!(
        (found.client_bytes.max, found.server_bytes.max),
        (100, 3000)
    );
}

#[test]
fn lifetimes_of_incomplete_connections_are_lower_bounds() {
    let found = analyse(&erf(&WHOLE[2..]));
    assert_eq!(
        (found.connections.begun_before, found.connections.whole),
        (1, 0)
    );
    assert_eq!(found.server_bytes.max, 3000);
    assert_eq!((found.lifetime_ms.count, found.at_least_ms.count), (0, 1));
    let found = analyse(&erf(&WHOLE[..8]));
    assert_eq!(
        (found.connections.not_ended, found.connections.whole),
        (1, 0)
    );
    // A reset ends both directions.
    let mut lines = WHOLE[..8].to_vec();
    lines.push((15, true, "R", 77, 0, 0));
    let found = analyse(&erf(&lines));
    assert_eq!(
        (found.connections.not_ended, found.connections.whole),
        (0, 1)
    );
    assert_eq!(
        (found.client_bytes.max, found.server_bytes.max),
        (100, 3000)
    );
}

#[test]
fn a_reused_port_is_another_connection() {
    let mut lines = WHOLE.to_vec();
    // A retransmission of the first SYN does not start a connection.
    lines.insert(1, (1, true, "S", 1000, 0, 0));
    lines.push((1000, true, "S", 500_000, 0, 0));
    lines.push((1001, false, "SA", 900_000, 500_001, 0));
    lines.push((1002, false, "RA", 900_001, 500_001, 0));
    let found = analyse(&erf(&lines));
    assert_eq!((found.connections.all, found.connections.whole), (2, 2));
    assert_eq!((found.lifetime_ms.min, found.lifetime_ms.count), (2, 2));
    assert_eq!((found.server_bytes.min, found.server_bytes.max), (0, 3000));
}

#[test]
fn truncated_files_are_read_up_to_their_end() {
    for file in [
        erf(&WHOLE),
        pcap(&WHOLE, 60, Endianness::Big),
        pcapng(&WHOLE),
    ] {
        let found = analyse(&file[..file.len() - 7]);
        assert_eq!(found.packets.all, 9);
        let says = |limit: &String| limit.contains("ends within a packet");
        assert!(found.limits.iter().any(says));
    }
}

#[test]
fn files_without_captured_tcp_are_refused() {
    assert!(
        refused(b"10.0.0.1 - - [24/Nov/2024:08:17:57 +0000] \"GET / HTTP/1.0\" 200 5\n")
            .contains("is not a packet capture")
    );
    assert!(refused(b"").contains("is not a packet capture"));
    let header = PcapHeader {
        datalink: DataLink::IEEE802_11,
        ..PcapHeader::default()
    };
    let mut wireless = PcapWriter::with_header(Vec::new(), header).expect("a header");
    let packet = PcapPacket::new(Duration::from_secs(1), 4, &[1, 2, 3, 4]);
    wireless.write_packet(&packet).expect("a packet");
    assert!(
        refused(&wireless.into_writer())
            .contains("1 packets: 1 in link type 105, which is not looked into")
    );
    let mut udp = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1, 2)
        .write(&mut udp, &[0; 4])
        .expect("a packet");
    let mut record = vec![1, 0, 0, 0, 9, 0, 0, 0, 22, 0, 0, 48, 0, 0, 0, 32];
    record.extend_from_slice(&udp);
    assert!(refused(&record).contains("no TCP segment among its 1 packets: 1 of other IP"));
    let mut damaged = erf(&WHOLE);
    damaged[88] = 77;
    assert!(refused(&damaged).contains("is not a packet capture"));
    let mut damaged = erf(&WHOLE);
    damaged[3 * 80 + 8] = 77;
    assert!(refused(&damaged).contains("damaged after packet 3: a record of type 77"));
}

#[test]
fn packets_are_found_in_frames_of_every_link_type() {
    let ip = ip_packet(&WHOLE[0]);
    let behind = |header: &[u8]| [header, &ip].concat();
    let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let vlan = [&[2; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let cooked_2 = [&[8, 0][..], &[0; 18]].concat();
    let frames = [
        (101, behind(&[])),
        (0, behind(&[2, 0, 0, 0])),
        (1, behind(&vlan)),
        (9, behind(&[0xff, 3, 0, 0x21])),
        (104, behind(&[0x0f, 0, 8, 0])),
        (100, behind(&llc)),
        (10, behind(&[&[0x50; 13], &llc[..]].concat())),
        (113, behind(&cooked)),
        (276, behind(&cooked_2)),
    ];
    for (number, frame) in frames {
        let link = Link::of_pcap(number);
        let Content::Tcp(segment) = Segment::of(&whole(link, &frame)) else {
            panic!("{number}")
        };
        assert_eq!(
            (segment.seq, segment.syn, segment.to.port()),
            (1000, true, 80)
        );
        for len in 0..frame.len() {
            // Any prefix of a frame must be parsed without a panic.
            Segment::of(&whole(link, &frame[..len]));
        }
    }
}

fn whole(link: Link, frame: &[u8]) -> Captured<'_> {
    Captured::new(0, link, frame, frame.len(), 0)
}

#[test]
fn ipv6_segments_are_found_after_extension_headers() {
    let mut packet = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64)
        .tcp(40_000, 80, 7, 100)
        .ack(9)
        .write(&mut packet, &[0; 300])
        .expect("a packet");
    let segment = |packet: &[u8]| match Segment::of(&whole(Link::Ip, packet)) {
        Content::Tcp(segment) => Some(segment),
        _ => None,
    };
    assert_eq!(
        segment(&packet).map(|s| (s.bytes, s.ack)),
        Some((300, Some(9)))
    );
    // Destination options of eight bytes before TCP.
    let payload_length = u16::from_be_bytes([packet[4], packet[5]]) + 8;
    packet[4..6].copy_from_slice(&payload_length.to_be_bytes());
    packet[6] = 60;
    packet.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(segment(&packet).map(|s| s.bytes), Some(300));
    // The header now says that this is a fragment other than the first.
    packet[6] = 44;
    packet.splice(40..48, [6, 0, 0, 8, 0, 0, 0, 1]);
    let fragment = Segment::of(&whole(Link::Ip, &packet));
    assert!(matches!(fragment, Content::Fragment));
}

#[test]
fn a_router_gets_the_same_packets_from_each_format() {
    use crate::packets::PacketTrace;
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str, file: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, file).expect("a file");
        PacketTrace::read(&path)
    };
    let files = [
        ("some.erf", erf(&WHOLE)),
        ("some.pcap", pcap(&WHOLE, 60, Endianness::Big)),
        ("some.pcapng", pcapng(&WHOLE)),
    ];
    let traces = files.map(|(name, file)| read(name, &file).expect("a capture"));
    for trace in &traces {
        assert_eq!(trace.packets, traces[0].packets, "{}", trace.name);
        // Three packets have 1500 bytes of data, which with headers is more than fits in a frame.
        assert_eq!((trace.packets.len(), trace.left_out.too_long), (7, 3));
        let third = trace.packets[3];
        assert_eq!((third.len, third.ttl, third.protocol), (152, 64, 6));
        assert_eq!(third.src.octets(), CLIENT.0);
    }
    // A multicast packet, one to the benchmarking network, and one that is too long.
    let odd = |dst: [u8; 4], len: u16| {
        let mut packet = ip_packet(&WHOLE[0]);
        packet[16..20].copy_from_slice(&dst);
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        packet
    };
    let mut writer = PcapNgWriter::new(Vec::new()).expect("a header");
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: Vec::new(),
    };
    writer.write_pcapng_block(interface).expect("an interface");
    let nobody = vec![0x60; 40];
    for data in [
        odd([224, 0, 0, 1], 100),
        odd([198, 18, 0, 9], 100),
        odd([12, 0, 0, 1], 9_000),
        nobody,
    ] {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_millis(1),
            original_len: data.len() as u32,
            data: data.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).expect("a packet");
    }
    let error = read("none.pcapng", &writer.into_inner()).expect_err("nothing to route");
    let said = error.to_string();
    assert!(
        said.contains("none.pcapng") && said.contains("4 packets"),
        "{said}"
    );
}

/// Writes a pcap file by hand: the numbers of its header in 32 bits from the snapshot length on, and for each packet seconds, their fraction,
/// captured and original length, and the data.
fn written(snaplen: u32, link: u32, packets: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, snaplen, link]
        .map(u32::to_le_bytes)
        .concat();
    for (seconds, fraction, wire, data) in packets {
        let header = [*seconds, *fraction, data.len() as u32, *wire];
        file.extend(header.map(u32::to_le_bytes).concat());
        file.extend_from_slice(data);
    }
    file
}

/// Returns the packets of [`WHOLE`], each with the headers that `around` puts in front.
fn framed(around: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
    WHOLE.iter().map(|line| around(&ip_packet(line))).collect()
}

/// Writes a pcap file of these frames, which are captured as a whole.
fn of_frames(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let packets: Vec<_> = frames
        .iter()
        .map(|frame| (950_000_000, 5, frame.len() as u32, frame.as_slice()))
        .collect();
    written(262_144, link, &packets)
}

/// Asserts that the capture has the connection of [`WHOLE`].
#[track_caller]
fn assert_whole(file: &[u8]) -> CaptureAnalysis {
    let found = analyse(file);
    assert_eq!((found.packets.all, found.packets.tcp), (10, 10));
    assert_eq!((found.connections.all, found.connections.whole), (1, 1));
    let bytes = (found.client_bytes.max, found.server_bytes.max);
    assert_eq!(bytes, (100, 3000));
    found
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], packet].concat()
}

#[test]
fn harmless_oddities_of_pcap_headers_are_read() {
    let frames = framed(|ip| ethernet(0x0800, ip));
    // Packets that are longer than the snapshot length, and times whose fraction is more than a second.
    let cut: Vec<_> = frames
        .iter()
        .map(|frame| {
            (
                950_000_000,
                1_500_000,
                frame.len() as u32,
                &frame[..frame.len().min(96)],
            )
        })
        .collect();
    for snaplen in [96, 0, 10, u32::MAX] {
        let found = assert_whole(&written(snaplen, 1, &cut));
        assert_eq!(found.packets.truncated, 4);
    }
    // The link type's upper bits have the length of the check sequence, and bits without a meaning.
    for link in [0x2400_0001, 0x3000_0001, 0x0800_0001] {
        assert_whole(&of_frames(link, &frames));
    }
    // In Kuznetsov's variant, each packet's header has eight more bytes.
    let mut file = of_frames(1, &[]);
    file[..4].copy_from_slice(&0xa1b2_cd34_u32.to_le_bytes());
    for frame in &frames {
        let header = [950_000_000, 5, frame.len() as u32, frame.len() as u32, 0, 0];
        file.extend(header.map(u32::to_le_bytes).concat());
        file.extend_from_slice(frame);
    }
    assert_whole(&file);
    // In version 2.2, the original length comes first.
    let swapped: Vec<_> = cut
        .iter()
        .map(|&(s, f, wire, data)| (s, f, wire, data))
        .collect();
    let mut old = written(96, 1, &swapped);
    old[6] = 2;
    let mut at = 24;
    for (.., data) in &swapped {
        let (kept, wire) = (at + 8, at + 12);
        for byte in 0..4 {
            old.swap(kept + byte, wire + byte);
        }
        at += 16 + data.len();
    }
    assert_whole(&old);
}

#[test]
fn a_length_beyond_all_packets_is_damage() {
    let mut file = of_frames(1, &framed(|ip| ethernet(0x0800, ip)));
    file[24 + 8..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(
        refused(&file).contains("damaged after packet 0: a packet or block of 4294967295 bytes")
    );
}

#[test]
fn blocks_with_lengths_that_cannot_be_are_damage() {
    for len in [0, 8, u32::MAX, u32::MAX - 2, 1 << 30] {
        let mut file = block(0x0a0d_0d0a, &SECTION);
        file.extend(6_u32.to_le_bytes());
        file.extend(len.to_le_bytes());
        let error = refused(&file);
        assert!(
            error.contains("damaged after packet 0: a block of"),
            "{error}"
        );
    }
}

/// If IP's length is 0, the frame's length counts, which may be anything in a damaged capture.
#[test]
fn a_frame_of_gigabytes_adds_no_gigabytes() {
    let mut packet = ip_packet(&WHOLE[3]);
    packet[2..4].copy_from_slice(&[0, 0]);
    let frame = ethernet(0x0800, &packet);
    let file = written(262_144, 1, &[(1, 1, 3_000_000_000, &frame)]);
    assert!(analyse(&file).client_bytes.max <= 8 * 65_535);
}

/// Creates a block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, &body, &len].concat()
}

const SECTION: [u8; 16] = [
    0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
];

#[test]
fn blocks_of_every_kind_with_packets_are_read() {
    let numbers = |numbers: &[u32]| {
        numbers
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut file = block(0x0a0d_0d0a, &SECTION);
    // A snapshot length of 70, a check sequence of four bytes, 1000 s to add to times, an option that ends after its block.
    let options = [
        13, 0, 1, 0, 32, 0, 0, 0, 14, 0, 8, 0, 232, 3, 0, 0, 0, 0, 0, 0, 99, 0, 200, 0,
    ];
    file.extend(block(
        1,
        &[&[1, 0, 0, 0, 70, 0, 0, 0][..], &options].concat(),
    ));
    for (number, frame) in framed(|ip| [ethernet(0x0800, ip), vec![0; 4]].concat())
        .iter()
        .enumerate()
    {
        let kept = &frame[..frame.len().min(70)];
        let lengths = [kept.len() as u32, frame.len() as u32];
        file.extend(match number % 3 {
            0 => block(
                6,
                &[&numbers(&[0, 0, 5_000_000])[..], &numbers(&lengths), kept].concat(),
            ),
            1 => block(3, &[&numbers(&lengths[1..])[..], kept].concat()),
            _ => block(
                2,
                &[&numbers(&[0, 0, 6_000_000])[..], &numbers(&lengths), kept].concat(),
            ),
        });
        // An unknown block.
        file.extend(block(0x0bad, &[1, 2, 3, 4]));
    }
    let found = assert_whole(&file);
    assert_eq!(
        (found.first_us, found.last_us),
        (1_005_000_000, 1_006_000_000)
    );
    assert_eq!(found.packets.without_time, 3);
    assert!(
        found
            .limits
            .iter()
            .any(|limit| limit.starts_with("3 packets have no time"))
    );
}

#[test]
fn interfaces_whose_link_is_not_read_are_counted() {
    let mut file = block(0x0a0d_0d0a, &SECTION);
    file.extend(block(1, &[105, 0, 0, 0, 0, 0, 0, 0]));
    file.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0]));
    let packet = |interface: u32, data: &[u8]| {
        let len = data.len() as u32;
        let header = [interface, 0, 5, len, len].map(u32::to_le_bytes).concat();
        block(6, &[&header, data].concat())
    };
    file.extend(packet(0, &[1, 2, 3, 4]));
    file.extend(packet(1, &ip_packet(&WHOLE[0])));
    let found = analyse(&file);
    assert_eq!((found.packets.all, found.packets.tcp), (2, 1));
    let says = "1 packets are in link type 105, which is not looked into";
    assert!(
        found.limits.contains(&says.to_owned()),
        "{:?}",
        found.limits
    );
}

/// Returns an IPv4 packet of this protocol with this content.
fn ipv4(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 172, 16, 0, 1, 172, 16, 0, 2,
    ];
    packet[2..4].copy_from_slice(&(20 + content.len() as u16).to_be_bytes());
    packet.extend_from_slice(content);
    packet
}

fn udp(port: u16, content: &[u8]) -> Vec<u8> {
    let header = [5555, port, 8 + content.len() as u16, 0].map(u16::to_be_bytes);
    ipv4(17, &[&header.concat(), content].concat())
}

#[test]
fn segments_are_found_in_tunnels() {
    let gre = |header: &[u8], inner: &[u8]| ethernet(0x0800, &ipv4(47, &[header, inner].concat()));
    let ppp = |ip: &[u8]| [&[0x11, 0, 0, 7, 0, 9][..], &[0, 0x21], ip].concat();
    let inner = |ip: &[u8]| ethernet(0x0800, ip);
    type Around<'a> = (&'a str, &'a dyn Fn(&[u8]) -> Vec<u8>);
    let tunnels: [Around<'_>; 23] = [
        ("QinQ", &|ip| {
            ethernet(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0], ip].concat())
        }),
        ("VN-tag", &|ip| {
            ethernet(0x8926, &[&[1, 2, 3, 4, 8, 0], ip].concat())
        }),
        ("FabricPath", &|ip| {
            ethernet(0x8903, &[&[0, 9][..], &inner(ip)].concat())
        }),
        ("802.1ah", &|ip| {
            ethernet(0x88e7, &[&[0, 0, 0, 9][..], &inner(ip)].concat())
        }),
        ("LLC and SNAP", &|ip| {
            ethernet(
                (8 + ip.len() as u16).min(1500),
                &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip].concat(),
            )
        }),
        ("PPPoE", &|ip| ethernet(0x8864, &ppp(ip))),
        ("MPLS", &|ip| {
            ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64], ip].concat())
        }),
        ("MPLS with Ethernet", &|ip| {
            ethernet(
                0x8847,
                &[&[0, 1, 1, 64, 0, 0, 0, 0][..], &inner(ip)].concat(),
            )
        }),
        ("GRE", &|ip| gre(&[0, 0, 8, 0], ip)),
        ("GRE with checksum, key and number", &|ip| {
            gre(&[[0xb0, 0, 8, 0], [1; 4], [2; 4], [3; 4]].concat(), ip)
        }),
        ("GRE with Ethernet", &|ip| {
            gre(&[0x20, 0, 0x65, 0x58, 1, 2, 3, 4], &inner(ip))
        }),
        ("PPTP", &|ip| {
            gre(
                &[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2],
                &[&[0x21], ip].concat(),
            )
        }),
        ("ERSPAN I", &|ip| gre(&[0, 0, 0x88, 0xbe], &inner(ip))),
        ("ERSPAN II", &|ip| {
            gre(
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1],
                &[&[0x10; 8][..], &inner(ip)].concat(),
            )
        }),
        ("ERSPAN III", &|ip| {
            gre(
                &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1],
                &[&[0x20; 11][..], &[1], &[0; 8], &inner(ip)].concat(),
            )
        }),
        ("IP in IP", &|ip| ethernet(0x0800, &ipv4(4, ip))),
        ("IP in IP twice", &|ip| {
            ethernet(0x0800, &ipv4(4, &ipv4(4, ip)))
        }),
        ("VXLAN", &|ip| {
            ethernet(
                0x0800,
                &udp(4789, &[&[8, 0, 0, 0, 0, 0, 5, 0][..], &inner(ip)].concat()),
            )
        }),
        ("VXLAN-GPE", &|ip| {
            ethernet(
                0x0800,
                &udp(4790, &[&[12, 0, 0, 1, 0, 0, 5, 0], ip].concat()),
            )
        }),
        ("Geneve", &|ip| {
            let header = [1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 1, 1, 1];
            ethernet(0x0800, &udp(6081, &[&header[..], &inner(ip)].concat()))
        }),
        ("GTP", &|ip| {
            ethernet(
                0x0800,
                &udp(2152, &[&[0x30, 255, 0, 0, 0, 0, 0, 1], ip].concat()),
            )
        }),
        ("GTP with an extension", &|ip| {
            let header = [0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
            ethernet(0x0800, &udp(2152, &[&header[..], ip].concat()))
        }),
        ("MPLS over UDP", &|ip| {
            ethernet(0x0800, &udp(6635, &[&[0, 1, 1, 64], ip].concat()))
        }),
    ];
    for (name, around) in tunnels {
        let frames = framed(around);
        let found = CaptureAnalysis::from_reader(Path::new(name), &*of_frames(1, &frames));
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.packets.tcp, 10, "{name}");
        assert_eq!(
            (found.client_bytes.max, found.server_bytes.max),
            (100, 3000),
            "{name}"
        );
        for len in 0..frames[0].len() {
            Segment::of(&whole(Link::Ethernet, &frames[0][..len]));
        }
    }
}

#[test]
fn what_is_not_looked_into_is_named() {
    let frames = [
        framed(|ip| ethernet(0x0800, ip)),
        framed(|ip| ethernet(0x0800, &ipv4(50, ip))),
        framed(|ip| ethernet(0x88e5, ip)),
    ];
    let found = analyse(&of_frames(1, &frames.concat()));
    assert_eq!((found.packets.all, found.packets.tcp), (30, 10));
    for name in ["ESP", "MACsec"] {
        assert_eq!(found.packets.not_looked_into[name], 10);
        let says = format!("10 packets are in {name}, which is not looked into");
        assert!(found.limits.contains(&says), "{:?}", found.limits);
    }
    let error = refused(&of_frames(1, &frames[1]));
    assert!(
        error.contains("no TCP segment among its 10 packets: 10 in ESP, which is not looked into")
    );
}

#[test]
fn segments_above_64_kib_have_their_length() {
    let segment = |seq: u32| {
        let mut packet = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .tcp(80, 40_000, seq, 1000)
            .ack(9)
            .write(&mut packet, &[0; 40_000])
            .expect("a packet");
        packet.resize(packet.len() + 30_000, 0);
        packet[4..6].copy_from_slice(&[0, 0]);
        packet
    };
    // A length of 0 alone, and with the jumbo payload option (RFC 2675).
    let plain: Vec<Vec<u8>> = (0..3)
        .map(|i| ethernet(0x86dd, &segment(1 + i * 70_000)))
        .collect();
    let jumbo = |mut packet: Vec<u8>| {
        packet[6] = 0;
        let bytes = (packet.len() as u32 - 40 + 8).to_be_bytes();
        packet.splice(40..40, [&[6, 0, 0xc2, 4][..], &bytes].concat());
        packet
    };
    let jumbo: Vec<Vec<u8>> = (0..3)
        .map(|i| ethernet(0x86dd, &jumbo(segment(1 + i * 70_000))))
        .collect();
    for frames in [plain, jumbo] {
        assert_eq!(analyse(&of_frames(1, &frames)).server_bytes.max, 210_000);
        let cut: Vec<_> = frames
            .iter()
            .map(|frame| (1, 1, frame.len() as u32, &frame[..96]))
            .collect();
        assert_eq!(analyse(&written(96, 1, &cut)).server_bytes.max, 210_000);
    }
}

#[test]
fn numbers_far_from_all_others_add_no_bytes() {
    let with = |at: usize, line: Line| {
        let mut lines = WHOLE.to_vec();
        lines.insert(at, line);
        lines
    };
    let strays = [
        with(7, (12, false, "A", 1_500_000_000, 1101, 9)),
        with(7, (12, true, "A", 3_000_000_000, 2705, 9)),
        with(7, (12, false, "A", 1205 + 200_000, 1101, 9)),
        with(9, (12, true, "A", 1101, 2_000_000_000, 0)),
    ];
    for lines in strays {
        let found = analyse(&pcap(&lines, 2000, Endianness::Little));
        assert_eq!(
            (found.client_bytes.max, found.server_bytes.max),
            (100, 3000)
        );
        assert_eq!(found.connections.stray_segments, 1);
        let says = |limit: &String| limit.starts_with("1 numbers of segments");
        assert!(found.limits.iter().any(says), "{:?}", found.limits);
    }
    // Stray acknowledgments add no bytes either if only they show what the other end has sent.
    let lines = with(8, (12, true, "A", 1101, 2_000_000_000, 0));
    let client: Vec<Line> = lines.into_iter().filter(|line| line.1).collect();
    let found = analyse(&pcap(&client, 60, Endianness::Little));
    assert_eq!(found.server_bytes.max, 3001);
}

#[test]
fn a_gap_that_segments_follow_is_one_of_the_capture() {
    let mut lines = WHOLE.to_vec();
    lines.splice(
        8..,
        [
            (14, false, "A", 50_000_000, 1101, 1000),
            (15, false, "A", 50_001_000, 1101, 1000),
            (16, false, "FA", 50_002_000, 1101, 0),
        ],
    );
    let found = analyse(&pcap(&lines, 2000, Endianness::Little));
    // The missing bytes in between are not counted.
    assert_eq!(
        (found.server_bytes.max, found.connections.stray_segments),
        (5000, 0)
    );
}

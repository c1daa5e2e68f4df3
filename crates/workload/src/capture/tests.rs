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
    assert!(refused(&wireless.into_writer()).contains("packet 1 has the link type 105"));
    let mut udp = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1, 2)
        .write(&mut udp, &[0; 4])
        .expect("a packet");
    let mut record = vec![1, 0, 0, 0, 9, 0, 0, 0, 22, 0, 0, 48, 0, 0, 0, 32];
    record.extend_from_slice(&udp);
    assert!(refused(&record).contains("no TCP segment among its 1 packets"));
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
        (113, behind(&cooked)),
        (276, behind(&cooked_2)),
    ];
    for (number, frame) in frames {
        let link = Link::of_pcap(number).expect("known");
        let packet = link.ip(&frame).expect("IP");
        let Content::Tcp(segment) = Segment::of(&packet) else {
            panic!("{number}")
        };
        assert_eq!(
            (segment.seq, segment.syn, segment.to.port()),
            (1000, true, 80)
        );
        for len in 0..frame.len() {
            // Any prefix of a frame must be parsed without a panic.
            if let Some(packet) = link.ip(&frame[..len]) {
                Segment::of(&packet);
            }
        }
    }
}

#[test]
fn ipv6_segments_are_found_after_extension_headers() {
    let mut packet = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64)
        .tcp(40_000, 80, 7, 100)
        .ack(9)
        .write(&mut packet, &[0; 300])
        .expect("a packet");
    let segment = |packet: &[u8]| match Segment::of(&Link::Ip.ip(packet).expect("IP")) {
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
    let ip = Link::Ip.ip(&packet).expect("IP");
    assert!(matches!(Segment::of(&ip), Content::Fragment));
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

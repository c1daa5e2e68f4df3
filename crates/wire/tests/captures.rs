//! Capture files can be read back, by the library and by Wireshark.

use baton_wire::{
    CaptureWriter, Ecn, Endpoint, Flags, FrameNotes, Header, Link, Packet, SeqNr, Span, Time,
    encode_frame,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

fn frames() -> Vec<Vec<u8>> {
    let v4 = |host| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    let v6 = |host| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host));
    let pairs = [(v4(1), v4(2)), (v6(1), v6(2))];
    let frame = |(src, dst): (IpAddr, IpAddr)| {
        let header = Header {
            seq: SeqNr(7),
            flags: Flags::SYN,
            window: 9000,
            ..Header::default()
        };
        let packet = Packet {
            src: Endpoint::new(src, 5000),
            dst: Endpoint::new(dst, 80),
            ecn: Ecn::NotCapable,
            header,
        };
        let mut bytes = Vec::new();
        encode_frame(Link::between(src, dst), &packet, b"hello", &mut bytes).expect("it fits");
        bytes
    };
    pairs.into_iter().map(frame).collect()
}

fn moment(index: usize) -> Time {
    Time::ZERO + Span::from_secs(3) + Span::from_ns(index as u64 * 17 + 1)
}

fn capture() -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "server0").expect("memory takes all");
    for (index, frame) in frames().iter().enumerate() {
        writer
            .write_frame(moment(index), frame, frame.len())
            .expect("memory takes all");
    }
    let cut = &frames()[0][..54];
    writer
        .write_frame(moment(2), cut, 1514)
        .expect("memory takes all");
    writer.into_inner()
}

#[test]
fn a_capture_holds_what_was_written() {
    let file = capture();
    let mut reader = PcapNgReader::new(file.as_slice()).expect("it is a capture");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.expect("blocks are whole").into_owned() {
            Block::InterfaceDescription(interface) => assert_eq!(interface.options.len(), 2),
            Block::EnhancedPacket(packet) => packets.push(packet),
            other => panic!("{other:?} was not written"),
        }
    }
    assert_eq!(packets.len(), 3);
    for (packet, frame) in packets.iter().zip(frames()) {
        assert_eq!(
            (packet.data.as_ref(), packet.original_len as usize),
            (frame.as_slice(), frame.len())
        );
    }
    assert_eq!((packets[2].data.len(), packets[2].original_len), (54, 1514));
    assert_eq!(packets[1].timestamp, Duration::from_nanos(3_000_000_018));
}

#[test]
fn comments_and_totals_are_stored_in_options() {
    let mut writer = CaptureWriter::new(Vec::new(), "server0").expect("memory takes all");
    let frame = &frames()[0];
    let notes = FrameNotes {
        is_inbound: Some(false),
        comment: Some("sent by the adapter"),
        lost_before: 3,
    };
    writer
        .write_noted(moment(0), frame, frame.len(), notes)
        .expect("memory takes all");
    let at = moment(1);
    writer.write_totals(at, 4, 3).expect("memory takes all");
    let file = writer.into_inner();
    let mut reader = PcapNgReader::new(file.as_slice()).expect("it is a capture");
    let mut options = Vec::new();
    while let Some(block) = reader.next_block() {
        options.push(match block.expect("blocks are whole") {
            Block::EnhancedPacket(packet) => format!("{:?}", packet.options),
            Block::InterfaceStatistics(totals) => format!("{:?}", totals.options),
            _ => continue,
        });
    }
    let expected = [
        r#"[Comment("sent by the adapter"), Flags(2), DropCount(3)]"#,
        "[IsbIfRecv(4), IsbIfDrop(3)]",
    ];
    assert_eq!(options, expected);
    // Block type, length and interface come before the upper half of the time.
    let totals = file.len() - (3 * 4 + 8 + 12 + 12 + 4 + 4);
    let word = |at: usize| {
        u64::from(u32::from_ne_bytes(
            file[at..at + 4].try_into().expect("four"),
        ))
    };
    assert_eq!(
        word(totals + 12) << 32 | word(totals + 16),
        at.as_ps() / 1000
    );
}

/// Runs only where tshark is installed.
#[test]
fn wireshark_reads_a_capture_with_correct_checksums() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("test.pcapng");
    std::fs::write(&path, capture()).expect("a file");
    let fields = [
        "frame.time_epoch",
        "frame.len",
        "tcp.seq_raw",
        "tcp.checksum.status",
        "frame.interface_name",
    ];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args([
        "-o",
        "tcp.check_checksum:TRUE",
        "-T",
        "fields",
        "-E",
        "separator=|",
    ]);
    let output = command
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0], "3.000000001|59|7|1|server0");
    assert_eq!(lines[1], "3.000000018|79|7|1|server0");
    assert!(lines[2].starts_with("3.000000035|1514|7|"), "{text}");
}

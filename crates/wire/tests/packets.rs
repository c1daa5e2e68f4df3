//! Segments are the same after encoding and decoding, and damaged bytes are refused for the right reason.

use baton_wire::{
    DecodeError, Ecn, EncodeError, Endpoint, FastOpenCookie, FastOpenOption, Flags, Header, Link,
    LowerHeaders, Options, Packet, SackBlock, SeqNr, Timestamps, decode_frame, decode_packet,
    encode_frame, encode_packet, encode_pieces, frame_len,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn options() -> impl Strategy<Value = Options> {
    let block = (any::<u32>(), any::<u32>()).prop_map(|(start, end)| SackBlock {
        start: SeqNr(start),
        end: SeqNr(end),
    });
    let timestamps =
        (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo });
    (
        proptest::option::of(any::<u16>()),
        proptest::option::of(any::<u8>()),
        any::<bool>(),
        proptest::option::of(timestamps),
        proptest::collection::vec(block, 0..5),
        proptest::option::of(fast_open()),
        any::<u16>(),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, timestamps, sack, fast_open, urgent)| Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps,
                sack: sack.into_iter().collect(),
                fast_open,
                urgent,
            },
        )
        .prop_filter("at most 40 bytes of options", |options| options.len() <= 40)
}

fn fast_open() -> impl Strategy<Value = FastOpenOption> {
    let of = |(bytes, pairs, experimental): ([u8; 16], usize, bool)| {
        let len = if pairs == 1 { 0 } else { 2 * pairs };
        FastOpenOption {
            cookie: FastOpenCookie::new(&bytes[..len]).expect("an even number of bytes, 4 to 16"),
            experimental,
        }
    };
    (any::<[u8; 16]>(), 1_usize..9, any::<bool>()).prop_map(of)
}

fn ends() -> impl Strategy<Value = (Endpoint, Endpoint)> {
    let v4 = any::<[u8; 4]>().prop_map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
    let v6 = any::<[u8; 16]>().prop_map(|octets| IpAddr::V6(Ipv6Addr::from(octets)));
    let pair = prop_oneof![(v4.clone(), v4), (v6.clone(), v6)];
    (pair, any::<u16>(), any::<u16>())
        .prop_map(|((src, dst), from, to)| (Endpoint::new(src, from), Endpoint::new(dst, to)))
}

fn packet() -> impl Strategy<Value = Packet> {
    let ecn = prop_oneof![
        Just(Ecn::NotCapable),
        Just(Ecn::Capable0),
        Just(Ecn::Capable1),
        Just(Ecn::Congested)
    ];
    (ends(), ecn, any::<(u32, u32, u8, u16)>(), options()).prop_map(
        |((src, dst), ecn, fields, options)| {
            let (seq, ack, flags, window) = fields;
            let flags = Flags::from_bits_truncate(flags);
            Packet {
                src,
                dst,
                ecn,
                header: Header {
                    seq: SeqNr(seq),
                    ack: SeqNr(ack),
                    flags,
                    window,
                    options,
                },
            }
        },
    )
}

fn example() -> Packet {
    let end = |host, port| Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port);
    let header = Header {
        seq: SeqNr(1),
        flags: Flags::ACK,
        window: 500,
        ..Header::default()
    };
    Packet {
        src: end(1, 80),
        dst: end(2, 5000),
        ecn: Ecn::NotCapable,
        header,
    }
}

fn bytes_of(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_packet(packet, payload, &mut bytes).expect("it fits");
    bytes
}

proptest! {
    #[test]
    fn encoded_packets_round_trip(packet in packet(), payload in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let bytes = bytes_of(&packet, &payload);
        prop_assert_eq!(decode_packet(&bytes), Ok((packet.clone(), payload.as_slice())));
        let ip_len = if packet.src.addr.is_ipv4() { 20 } else { 40 };
        prop_assert_eq!(bytes.len(), ip_len + 20 + packet.header.options.len() + payload.len());

        let mut frame = b"before".to_vec();
        let link = Link::between(packet.src.addr, packet.dst.addr);
        encode_frame(link, &packet, &payload, &mut frame).expect("it fits");
        prop_assert_eq!(frame_len(bytes.len()), (frame.len() - 6 + 4).max(64));
        // Short frames are padded on the way.
        frame.resize(frame.len().max(66), 0);
        prop_assert_eq!(decode_frame(&frame[6..]), Ok((packet, payload.as_slice())));
    }

    #[test]
    fn one_wrong_byte_is_noticed(packet in packet(), at in any::<prop::sample::Index>(), change in 1u8..) {
        let mut bytes = bytes_of(&packet, b"some data");
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        if let Ok((decoded, payload)) = decode_packet(&bytes) {
            // IPv6 leaves the hop limit, the flow label and most of the traffic class unprotected.
            prop_assert!(packet.src.addr.is_ipv6() && (at < 4 || at == 7), "byte {} changed", at);
            prop_assert_eq!(&decoded.header, &packet.header);
            prop_assert_eq!(payload, b"some data");
        }
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_packet(&bytes);
        let _ = decode_frame(&bytes);
    }
}

#[test]
fn broken_packets_are_refused_for_the_right_reason() {
    let bytes = bytes_of(&example(), b"data");
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        decode_packet(&bytes).expect_err("it is broken")
    };
    assert_eq!(changed(8, 1), DecodeError::IpChecksum);
    assert_eq!(changed(43, b'A'), DecodeError::TcpChecksum);
    assert_eq!(changed(6, 0x20), DecodeError::Fragment);
    assert_eq!(changed(9, 17), DecodeError::NotTcp);
    assert_eq!(
        decode_packet(&bytes[..30]).expect_err("it is cut off"),
        DecodeError::Malformed
    );
    assert_eq!(
        decode_frame(&[0; 60]).expect_err("it is no IP"),
        DecodeError::NotTcp
    );
}

#[test]
fn options_have_the_order_of_linux() {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let block = SackBlock {
        start: SeqNr(3),
        end: SeqNr(4),
    };
    let syn = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps,
        ..Options::default()
    };
    let with_blocks = Options {
        timestamps,
        sack: [block].into_iter().collect(),
        ..Options::default()
    };
    let without_timestamps = Options {
        timestamps: None,
        ..syn
    };
    let cookie = |len: u8| {
        let bytes: Vec<u8> = (10..10 + len).collect();
        FastOpenCookie::new(&bytes).expect("a cookie")
    };
    let with_cookie = |len| Options {
        fast_open: Some(FastOpenOption::new(cookie(len))),
        ..Options::default()
    };
    let experimental = |len| Options {
        fast_open: Some(FastOpenOption {
            cookie: cookie(len),
            experimental: true,
        }),
        ..Options::default()
    };
    for (options, expected) in [
        (
            syn,
            &[
                2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7,
            ][..],
        ),
        (
            without_timestamps,
            &[2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7][..],
        ),
        // RFC 7413 4.1.1; the no-operations follow the option, as in Linux.
        (with_cookie(0), &[34, 2, 1, 1][..]),
        (with_cookie(4), &[34, 6, 10, 11, 12, 13, 1, 1][..]),
        (with_cookie(6), &[34, 8, 10, 11, 12, 13, 14, 15][..]),
        (experimental(0), &[254, 4, 0xf9, 0x89][..]),
        (
            experimental(6),
            &[254, 10, 0xf9, 0x89, 10, 11, 12, 13, 14, 15, 1, 1][..],
        ),
        (
            with_blocks,
            &[
                1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4,
            ][..],
        ),
    ] {
        let mut packet = example();
        packet.header.options = options;
        let bytes = bytes_of(&packet, b"");
        assert_eq!(&bytes[40..], expected);
        assert_eq!(packet.header.options.len(), expected.len());
    }
}

/// Returns the options that are decoded from a header with these bytes of options.
fn options_read(bytes: &[u8]) -> Options {
    assert!(bytes.len() == 12, "as long as the timestamps replaced");
    let mut packet = example();
    packet.header.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    let mut encoded = bytes_of(&packet, b"");
    encoded[40..52].copy_from_slice(bytes);
    fix_tcp_checksum(&mut encoded);
    let (packet, _) = decode_packet(&encoded).expect("a segment with invalid options is valid");
    packet.header.options
}

#[test]
fn unknown_options_are_skipped_and_invalid_ones_end_parsing() {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let mss = Options {
        mss: Some(1460),
        ..Options::default()
    };
    let stamped = Options {
        timestamps,
        ..Options::default()
    };
    // Unknown: an experimental option without the number of an experiment.
    assert_eq!(
        options_read(&[254, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
        stamped
    );
    // Known, but of a wrong length: window scale, SACK.
    assert_eq!(options_read(&[3, 4, 7, 7, 2, 4, 5, 180, 5, 4, 0, 0]), mss);
    // Fast Open with too few bytes, with an odd number of bytes, and with a valid number.
    assert_eq!(options_read(&[34, 4, 9, 9, 2, 4, 5, 180, 1, 1, 1, 1]), mss);
    assert_eq!(options_read(&[34, 7, 9, 9, 9, 9, 9, 2, 4, 5, 180, 1]), mss);
    let given = options_read(&[34, 8, 9, 9, 9, 9, 9, 9, 1, 1, 1, 1]);
    let cookie = |len| FastOpenCookie::new(&[9; 6][..len]).expect("a cookie");
    assert_eq!(given.fast_open, Some(FastOpenOption::new(cookie(6))));
    // Fast Open as an experimental option; other experiments are ignored.
    let given = options_read(&[254, 8, 0xf9, 0x89, 9, 9, 9, 9, 1, 1, 1, 1]);
    let experimental = FastOpenOption {
        cookie: cookie(4),
        experimental: true,
    };
    assert_eq!(given.fast_open, Some(experimental));
    let other = options_read(&[254, 8, 0xf9, 0x88, 9, 9, 9, 9, 1, 1, 1, 1]);
    assert_eq!(other, Options::default());
    // An impossible length, or an option beyond the end of the header: the options before it remain valid.
    assert_eq!(options_read(&[2, 4, 5, 180, 254, 1, 3, 3, 7, 0, 0, 0]), mss);
    assert_eq!(options_read(&[2, 4, 5, 180, 254, 0, 3, 3, 7, 0, 0, 0]), mss);
    assert_eq!(
        options_read(&[2, 4, 5, 180, 3, 3, 7, 1, 254, 5, 0, 0]).window_scale,
        Some(7)
    );
    assert_eq!(options_read(&[2, 4, 5, 180, 1, 1, 1, 1, 1, 1, 1, 254]), mss);
    // The end of the list.
    assert_eq!(options_read(&[2, 4, 5, 180, 0, 3, 3, 7, 0, 0, 0, 0]), mss);
}

#[test]
fn a_syn_is_byte_for_byte_what_linux_sends() {
    // A SYN as Linux sends it. Its IP checksum is worked out on paper, TCP's by the plain sum above.
    let bytes = hex(
        "4500003c000040004006 26ba 0a000001 0a000002 9c40 0050 3ade68b1 00000000 a002 faf0 0000 0000 \
         020405b4 0402080a 0000000a 00000000 01030307",
    );
    let mut packet = example();
    packet.src.port = 40_000;
    packet.dst.port = 80;
    packet.header = Header {
        seq: SeqNr(987_654_321),
        flags: Flags::SYN,
        window: 64_240,
        options: Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 10, echo: 0 }),
            ..Options::default()
        },
        ..Header::default()
    };
    let mut expected = bytes;
    fix_tcp_checksum(&mut expected);
    assert_eq!(bytes_of(&packet, b""), expected);
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("a byte"))
        .collect()
}

#[test]
fn data_in_pieces_is_joined() {
    let packet = example();
    let lower = LowerHeaders::new(None, packet.src.addr, packet.dst.addr).expect("one version");
    for cuts in [
        &[&b"d"[..], b"at", b"", b"a"][..],
        &[b"data"],
        &[b"dat", b"a"],
    ] {
        let mut bytes = Vec::new();
        encode_pieces(&lower, packet.head(), cuts.iter().copied(), &mut bytes).expect("it fits");
        assert_eq!(bytes, bytes_of(&packet, b"data"));
    }
}

#[test]
fn connections_over_ipv6_have_flow_labels() {
    let mut packet = example();
    packet.src.addr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    packet.dst.addr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let headers = LowerHeaders::new(None, packet.src.addr, packet.dst.addr).expect("one version");
    let encoded = |packet: &Packet, data: &'static [u8]| {
        let (mut bytes, lower) = (Vec::new(), headers.with_flow_labels(7));
        let data = std::iter::once(data);
        encode_pieces(&lower, packet.head(), data, &mut bytes).expect("it fits");
        let head = u32::from_be_bytes(*bytes.first_chunk().expect("a header"));
        (head & 0xf_ffff, bytes)
    };
    let (label, bytes) = encoded(&packet, b"data");
    assert_ne!(label, 0);
    assert_eq!(decode_packet(&bytes), Ok((packet.clone(), &b"data"[..])));
    assert_eq!(encoded(&packet, b"other").0, label);
    packet.src.port += 1;
    assert_ne!(encoded(&packet, b"data").0, label);
}

#[test]
fn padding_and_extension_headers_are_not_data() {
    let mut packet = example();
    packet.src.addr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    packet.dst.addr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let mut bytes = bytes_of(&packet, b"data");
    // Destination options that only pad.
    bytes.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
    (bytes[5], bytes[6]) = (bytes[5] + 8, 60);
    bytes.extend([0; 5]);
    assert_eq!(decode_packet(&bytes), Ok((packet, &b"data"[..])));
    // A fragment header of a first fragment with more to come.
    bytes[6] = 44;
    bytes[40..48].copy_from_slice(&[6, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(decode_packet(&bytes), Err(DecodeError::Fragment));
}

/// The Internet checksum, written down independently (RFC 1071 1).
fn fix_tcp_checksum(bytes: &mut [u8]) {
    (bytes[36], bytes[37]) = (0, 0);
    let tcp_len = (bytes.len() - 20) as u32;
    let words = |bytes: &[u8]| {
        bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum::<u32>()
    };
    let mut sum = words(&bytes[12..]) + 6 + tcp_len;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (bytes[36], bytes[37]) = ((!sum >> 8) as u8, !sum as u8);
}

#[test]
fn data_that_does_not_fit_is_refused_without_side_effects() {
    let mut out = b"kept".to_vec();
    let link = Link {
        src: [2; 6],
        dst: [4; 6],
    };
    let mut mixed = example();
    mixed.dst.addr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    assert_eq!(
        encode_frame(link, &mixed, b"", &mut out),
        Err(EncodeError::MixedVersions)
    );
    assert_eq!(
        encode_frame(link, &example(), &[0; 65_496], &mut out),
        Err(EncodeError::TooLong(65_516))
    );
    let mut crowded = example();
    crowded.header.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    crowded.header.options.sack = [SackBlock {
        start: SeqNr(1),
        end: SeqNr(2),
    }; 4]
        .into_iter()
        .collect();
    assert_eq!(
        encode_frame(link, &crowded, b"", &mut out),
        Err(EncodeError::TooManyOptions(48))
    );
    assert_eq!(out, b"kept");
    assert_eq!(
        encode_frame(link, &example(), &[0; 65_495], &mut out),
        Ok(())
    );
}

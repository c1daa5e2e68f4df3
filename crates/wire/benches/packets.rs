//! Segments to and from bytes: what a frame costs before and after the engine, checksums included.

use baton_wire::{
    Ecn, Endpoint, Flags, Header, Link, Options, Packet, SeqNr, Timestamps, decode_frame,
    encode_frame,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::net::IpAddr;

/// A segment in mid-connection, as a modern host sends it.
fn packet(src: IpAddr, dst: IpAddr) -> Packet {
    Packet {
        src: Endpoint::new(src, 40_000),
        dst: Endpoint::new(dst, 80),
        ecn: Ecn::NotCapable,
        header: Header {
            seq: SeqNr(1_000_000),
            ack: SeqNr(77),
            flags: Flags::ACK,
            window: 501,
            options: Options {
                timestamps: Some(Timestamps { value: 5, echo: 6 }),
                ..Options::default()
            },
        },
    }
}

fn packets(criterion: &mut Criterion) {
    let v4: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().expect("an address"));
    let v6: [IpAddr; 2] = ["fd00::1", "fd00::2"].map(|text| text.parse().expect("an address"));
    for (version, [src, dst]) in [("v4", v4), ("v6", v6)] {
        let (packet, link) = (packet(src, dst), Link::between(src, dst));
        for (what, len) in [("ack", 0), ("full", 1448)] {
            let payload: Vec<u8> = (0..len).map(|at: u32| at as u8).collect();
            let mut group = criterion.benchmark_group(format!("packets/{version}"));
            group.throughput(Throughput::Elements(1));
            let mut frame = Vec::new();
            group.bench_function(BenchmarkId::new("encode", what), |bencher| {
                bencher.iter(|| {
                    frame.clear();
                    encode_frame(link, black_box(&packet), black_box(&payload), &mut frame)
                        .expect("it fits");
                    frame.len()
                });
            });
            group.bench_function(BenchmarkId::new("decode", what), |bencher| {
                bencher.iter(|| {
                    let (packet, payload) = decode_frame(black_box(&frame)).expect("it is right");
                    (packet.header.seq, payload.len())
                });
            });
        }
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);

//! Data through the shared buffer pool: one side copies it in, the other copies it out. Both are in one process and the data is in the processor's
//! cache, so only the copies are measured.

use baton_bus::link::{AdapterLink, Dma, DmaId, HostLink};
use baton_iolib::{Geometry, ShmAdapter, ShmHost, pair};
use baton_wire::Time;
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput};
use std::hint::black_box;

const NOW: Time = Time::ZERO;
const GEOMETRY: Geometry = Geometry {
    ring_depth: 8,
    buffers: 4,
    buffer_bytes: 16 << 10,
    most_sends: 4,
};

pub fn copies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("data there and back");
    for bytes in [64_usize, 2 << 10, 16 << 10] {
        let (mut host, mut adapter, _) = pair(GEOMETRY).expect("memory");
        let data = Bytes::from(vec![7; bytes]);
        group.throughput(Throughput::Bytes(2 * bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| {
                let there = request(&mut host, &mut adapter, black_box(&data));
                response(&mut host, &mut adapter, there)
            });
        });
    }
}

/// The host copies data into a buffer, and the adapter reads it.
fn request(host: &mut ShmHost, adapter: &mut ShmAdapter, data: &Bytes) -> Bytes {
    let len = data.len() as u32;
    let Ok(address) = host.place(data.clone()) else {
        panic!("no buffer is free");
    };
    adapter
        .read(NOW, DmaId(0), address, len)
        .expect("within the pool");
    host.free(address);
    match adapter.poll_dma(NOW).expect("the host is alive") {
        Some(Dma::Read { data, .. }) => data,
        other => panic!("the read is not complete: {other:?}"),
    }
}

/// The adapter writes data into a buffer, and the host copies it out.
fn response(host: &mut ShmHost, adapter: &mut ShmAdapter, data: Bytes) -> Bytes {
    let len = data.len() as u32;
    let address = host.reserve().expect("a free buffer");
    adapter
        .write(NOW, DmaId(0), address, data)
        .expect("within the pool");
    let told = adapter.poll_dma(NOW).expect("the host is alive");
    assert!(matches!(told, Some(Dma::Written { .. })));
    host.take(address, len).expect("a reserved buffer")
}

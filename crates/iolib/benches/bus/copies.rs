//! Data through the pool of shared memory: put there by one side and taken by the other, in one process and in the processor's
//! cache, where the copies themselves are what costs.

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

/// The host places data and the adapter fetches it.
fn request(host: &mut ShmHost, adapter: &mut ShmAdapter, data: &Bytes) -> Bytes {
    let len = data.len() as u32;
    let Ok(address) = host.place(data.clone()) else {
        panic!("there are buffers");
    };
    adapter
        .read(NOW, DmaId(0), address, len)
        .expect("within the pool");
    host.free(address);
    match adapter.poll_dma(NOW).expect("the host is there") {
        Some(Dma::Read { data, .. }) => data,
        other => panic!("what was read is not there: {other:?}"),
    }
}

/// The adapter puts data into a buffer and the host takes it from there.
fn response(host: &mut ShmHost, adapter: &mut ShmAdapter, data: Bytes) -> Bytes {
    let len = data.len() as u32;
    let address = host.reserve().expect("a buffer");
    adapter
        .write(NOW, DmaId(0), address, data)
        .expect("within the pool");
    let told = adapter.poll_dma(NOW).expect("the host is there");
    assert!(matches!(told, Some(Dma::Written { .. })));
    host.take(address, len).expect("it was reserved")
}

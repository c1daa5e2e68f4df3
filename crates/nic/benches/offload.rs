//! Requests served over the adapter's sockets: request and response of 1 KB on connections that stay, TCP of both ends and
//! an application that costs nothing included.

#[path = "../tests/adapter/serving/mod.rs"]
mod serving;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serving::Service;

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("offload/requests");
    for connections in [1, 64, 4096] {
        let mut service = Service::new(connections);
        group.throughput(Throughput::Elements(connections.into()));
        group.bench_function(BenchmarkId::from_parameter(connections), |bench| {
            bench.iter(|| service.round());
        });
    }
}

criterion_group!(benches, requests);
criterion_main!(benches);

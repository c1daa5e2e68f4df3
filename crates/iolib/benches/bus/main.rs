//! Compares ways to send descriptors between two processes: shared memory with rings of two depths, a Unix socket pair, and a pipe.
//!
//! *Rate*: one process sends batches of 1, 16 or 128 descriptors, and the other reads them and confirms the last one.
//! *Round trip*: one descriptor in each direction. Both are measured with the processes on two cores and on one. The
//! other process runs this program, too.
//! *Data there and back*: the cost of copying data through the shared buffer pool.

mod carrier;
mod copies;
mod peer;

use carrier::{Carrier, Kind};
use criterion::{BenchmarkId, Criterion, Throughput};
use peer::{Peer, Place};
use std::time::{Duration, Instant};

/// Numbers of descriptors in a batch.
const LEVELS: [usize; 3] = [1, 16, 128];

fn main() {
    if peer::serve_if_asked() {
        return;
    }
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for place in [Place::TwoCores, Place::OneCore] {
        rates(&mut criterion, place);
        round_trips(&mut criterion, place);
    }
    copies::copies(&mut criterion);
    criterion.final_summary();
}

fn rates(criterion: &mut Criterion, place: Place) {
    let mut group = criterion.benchmark_group(format!("rate, {place}"));
    for level in LEVELS {
        group.throughput(Throughput::Elements(level as u64));
        for kind in Kind::ALL {
            let mut peer = Peer::start(kind, place);
            let id = BenchmarkId::new(kind.name(), level);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|batches| send_batches(peer.carrier(), level, batches));
            });
        }
    }
}

/// Returns how long it takes until the other side has received all of `batches` batches.
fn send_batches(carrier: &mut dyn Carrier, level: usize, batches: u64) -> Duration {
    let batch = vec![carrier::plain(); level];
    let mut last = batch.clone();
    last[level - 1] = carrier::to_be_answered();
    let start = Instant::now();
    for _ in 1..batches {
        carrier.send(&batch);
    }
    carrier.send(&last);
    carrier.receive(&mut Vec::with_capacity(1));
    start.elapsed()
}

fn round_trips(criterion: &mut Criterion, place: Place) {
    let mut group = criterion.benchmark_group(format!("round trip, {place}"));
    for kind in Kind::ALL {
        let mut peer = Peer::start(kind, place);
        let mut answers = Vec::new();
        group.bench_function(kind.name(), |bencher| {
            bencher.iter(|| {
                peer.carrier().send(&[carrier::to_be_answered()]);
                answers.clear();
                peer.carrier().receive(&mut answers);
            });
        });
    }
}

//! Speed of the analysis of locality: references (blocks) per second, for curves over all sizes and for single caches.

use baton_cache::{AdmissionConfig, ByteBound, ReplacementConfig};
use baton_workload::analyse::{BlockString, hit_bytes, lru_hit_bytes};
use baton_workload::{Preset, SessionRule, Sessions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Number of 4 KB blocks in caches of 64 KB to 1 GB.
const SLOTS: [u32; 15] = {
    let mut slots = [16; 15];
    let mut i = 1;
    while i < slots.len() {
        slots[i] = 2 * slots[i - 1];
        i += 1;
    }
    slots
};

/// Returns all references of a generated log, as one cache sees them.
fn string(preset: Preset) -> BlockString {
    let log = preset.spec().generate(1, preset.requests());
    let log = log.expect("presets pass their own check");
    let sessions = Sessions::new(&log.requests, SessionRule::PAPERS);
    let strings = BlockString::split(&log, &sessions, 1, 4096);
    strings.expect("4096 is a power of two").swap_remove(0)
}

/// Uses a log like that of the World Cup (0.4 million references) and one like that of a delivery network (9.6 million references to 5 million
/// blocks).
fn lru_of_all_sizes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("LRU, all sizes");
    group.sample_size(10);
    for preset in [Preset::WorldCup, Preset::Cdn] {
        let string = string(preset);
        group.throughput(Throughput::Elements(string.references.len() as u64));
        group.bench_function(preset.name(), |bencher| {
            bencher.iter(|| black_box(lru_hit_bytes(&string, &SLOTS)));
        });
    }
    group.finish();
}

fn policies_at_4_mib(criterion: &mut Criterion) {
    let string = string(Preset::WorldCup);
    let mut group = criterion.benchmark_group("4 MiB, worldcup");
    group.sample_size(10);
    group.throughput(Throughput::Elements(string.references.len() as u64));
    for policy in ReplacementConfig::ALL {
        group.bench_function(policy.name(), |bencher| {
            bencher.iter(|| black_box(hit_bytes(&string, 1024, policy, AdmissionConfig::All)));
        });
    }
    let bound = ByteBound::new(&string.references);
    group.bench_function("min", |bencher| {
        bencher.iter(|| black_box(bound.hits_of_optimum(1024)));
    });
    group.bench_function("bound", |bencher| {
        bencher.iter(|| black_box(bound.hit_bytes(1024)));
    });
    group.finish();
}

criterion_group!(benches, lru_of_all_sizes, policies_at_4_mib);
criterion_main!(benches);

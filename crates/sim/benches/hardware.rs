//! Speed of the hardware models: line touches per second over the number of connections, and events per second over the number of pending events.

use std::hint::black_box;

use baton_sim::EventQueue;
use baton_sim::hardware::{MemoryConfig, MemoryHierarchy};
use baton_wire::{Span, Time};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Cache lines that a packet touches: 20 of its connection, 12 of hot kernel data, 48 of a copied stream, 4 of descriptors.
const TOUCHES: u64 = 84;

/// Touches the cache lines that packets would touch, one packet after the other.
struct Packets {
    memory: MemoryHierarchy,
    order: Vec<u64>,
    next: usize,
    stream: u64,
    cycle: u64,
}

impl Packets {
    fn new(connections: u64) -> Self {
        let memory = MemoryHierarchy::new(&MemoryConfig::default()).expect("the default is valid");
        let mut generator = Pcg64::seed_from_u64(1);
        let order = (0..1 << 16)
            .map(|_| generator.random_range(0..connections))
            .collect();
        let mut packets = Self {
            memory,
            order,
            next: 0,
            stream: 0,
            cycle: 0,
        };
        for _ in 0..20_000 {
            packets.run();
        }
        packets
    }

    fn touch(&mut self, address: u64, lines: u32, write: bool) {
        let cost = self.memory.access(self.cycle, address, lines * 64, write);
        self.cycle += cost.stall_cycles() + u64::from(lines);
    }

    fn run(&mut self) {
        let connection = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        self.stream = (self.stream + 48 * 64) % (64 << 20);
        self.touch((1 << 32) + connection * 20 * 64, 20, true);
        self.touch(2 << 32, 12, true);
        self.touch((3 << 32) + self.stream, 48, false);
        self.touch((4 << 32) + self.stream % (16 << 10), 4, true);
    }
}

fn hierarchy(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hierarchy");
    group.throughput(Throughput::Elements(TOUCHES));
    for connections in [16, 1_024, 8_192] {
        let mut packets = Packets::new(connections);
        group.bench_function(BenchmarkId::new("packet_touches", connections), |bencher| {
            bencher.iter(|| packets.run())
        });
    }

    let mut memory = MemoryHierarchy::new(&MemoryConfig::default()).expect("the default is valid");
    group.throughput(Throughput::Elements(20 + 12 + 4));
    group.bench_function("l1_hits", |bencher| {
        bencher.iter(|| {
            for (address, lines) in [(0, 20), (0x4000, 12), (0x8000, 4)] {
                black_box(memory.access(0, black_box(address), lines * 64, true));
            }
        });
    });

    group.throughput(Throughput::Elements(24));
    let mut address = 0;
    group.bench_function("dma_write_frame", |bencher| {
        bencher.iter(|| {
            memory.dma_write(0, address, 1_518);
            address = (address + 2_048) % (1 << 20);
        });
    });
    group.finish();
}

/// The hold model: repeatedly removes the earliest event and adds another one, mostly with the delay of a packet, and sometimes of a link or a timer.
fn event_queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event_queue");
    group.throughput(Throughput::Elements(1));
    let mut generator = Pcg64::seed_from_u64(1);
    let delays: Vec<Span> = (0..1 << 16)
        .map(|_| match generator.random_range(0..100) {
            0 => Span::from_ms(200),
            1..10 => Span::from_ns(generator.random_range(20_000..40_000)),
            _ => Span::from_ns(generator.random_range(100..3_000)),
        })
        .collect();
    for pending in [64, 1_024, 16_384] {
        let mut queue: EventQueue<[u32; 2]> = EventQueue::new();
        for (number, &delay) in (0..pending).zip(&delays) {
            queue.push(Time::ZERO + delay, [number, 0]);
        }
        let mut next = 0;
        group.bench_function(BenchmarkId::new("hold", pending), |bencher| {
            bencher.iter(|| {
                let (now, event) = queue.pop().expect("the number of events is constant");
                next = (next + 1) % delays.len();
                queue.push(now + delays[next], event);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, hierarchy, event_queue);
criterion_main!(benches);

//! What one descriptor costs: to write and read, and to pass through a queue and a link, by how many wait before they go.

use baton_bus::descriptor::{Action, Buffer, Outcome, Request, Response, Status};
use baton_bus::link::{AdapterLink, HostLink, MemoryConfig, embed, extract, memory_link};
use baton_bus::{Batching, BatchingPolicy, Descriptor, DescriptorQueue, Urgency};
use baton_wire::{Span, Time};
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Descriptors of one measurement.
const COUNT: u32 = 128;

fn send(tag: u32) -> Request {
    let data = Buffer::Memory {
        address: 4096 * u64::from(tag),
        len: 1024,
    };
    Request {
        socket: tag % 16,
        tag,
        action: Action::send(data, false),
    }
}

fn sent(tag: u32) -> Response {
    Response {
        socket: tag % 16,
        tag,
        status: Status::Ok,
        outcome: Outcome::Sent {
            len: 1024,
            cumulative: false,
        },
    }
}

fn coding(c: &mut Criterion) {
    let mut group = c.benchmark_group("coding");
    group.throughput(Throughput::Elements(COUNT.into()));
    group.bench_function("encode_request", |b| {
        b.iter(|| {
            for tag in 0..COUNT {
                black_box(black_box(send(tag)).encode());
            }
        });
    });
    let requests: Vec<_> = (0..COUNT).map(|tag| send(tag).encode()).collect();
    group.bench_function("decode_request", |b| {
        b.iter(|| {
            for descriptor in &requests {
                let _ = black_box(Request::decode(black_box(descriptor)));
            }
        });
    });
    let responses: Vec<_> = (0..COUNT).map(|tag| sent(tag).encode()).collect();
    group.bench_function("decode_response", |b| {
        b.iter(|| {
            for descriptor in &responses {
                let _ = black_box(Response::decode(black_box(descriptor)));
            }
        });
    });
    let data = Bytes::from_static(&[7; 64]);
    let mut tail = Vec::new();
    group.bench_function("inline_64_bytes", |b| {
        b.iter(|| {
            for tag in 0..COUNT {
                let (socket, more) = (1, false);
                let data_here = Buffer::Inline { len: 64 };
                let action = Action::send(data_here, more);
                let mut head = Request {
                    socket,
                    tag,
                    action,
                }
                .encode();
                tail.clear();
                tail.push(head);
                embed(&data, &mut head, &mut tail);
                tail[0] = head;
                let _ = black_box(extract::<Bytes>(&tail));
            }
        });
    });
    group.finish();
}

/// Passes `COUNT` descriptors through the queue, and what is due of them through the link.
fn pass(
    queue: &mut DescriptorQueue,
    descriptors: &[Descriptor],
    now: &mut Time,
    mut put: impl FnMut(&[Descriptor]) -> usize,
) {
    for descriptor in descriptors {
        *now += Span::from_ns(200);
        queue.push(*now, &[*descriptor], 0, Urgency::Lazy);
        loop {
            let transfer = queue.next_transfer(*now);
            let offered = transfer.len();
            if offered == 0 {
                break;
            }
            let taken = put(transfer);
            queue.transferred(taken, offered);
        }
    }
}

fn queues(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue");
    group.throughput(Throughput::Elements(COUNT.into()));
    let descriptors: Vec<_> = (0..COUNT).map(|tag| sent(tag).encode()).collect();
    let fixed = |level| Batching {
        level,
        ..Batching::default()
    };
    let adaptive = Batching {
        policy: BatchingPolicy::Adaptive,
        ..Batching::default()
    };
    let settings = [
        ("level_1", fixed(1)),
        ("level_8", fixed(8)),
        ("level_64", fixed(64)),
        ("adaptive", adaptive),
    ];
    for (name, batching) in settings {
        let mut queue = DescriptorQueue::new(&batching, 128).expect("batching that works");
        let mut now = Time::ZERO;
        group.bench_function(BenchmarkId::new("alone", name), |b| {
            b.iter(|| {
                pass(&mut queue, &descriptors, &mut now, |transfer| {
                    black_box(transfer).len()
                });
            });
        });
        let (mut host, mut adapter) = memory_link::<Bytes>(MemoryConfig::default());
        let mut got = Vec::new();
        group.bench_function(BenchmarkId::new("with_link", name), |b| {
            b.iter(|| {
                pass(&mut queue, &descriptors, &mut now, |transfer| {
                    let taken = host.put(Time::ZERO, transfer).expect("a link");
                    got.clear();
                    adapter
                        .get(Time::ZERO, 128, &mut got)
                        .expect("whole entries");
                    taken
                });
            });
        });
    }
    group.finish();
}

criterion_group!(benches, coding, queues);
criterion_main!(benches);

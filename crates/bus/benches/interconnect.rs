//! Transfers a second on each interconnect, with one device and with two, eight transfers under way for each.

use baton_bus::interconnect::{DeviceId, Interconnect, InterconnectConfig, Operation, Transfer};
use baton_bus::{BytesByCategory, Category};
use baton_wire::Time;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Transfers of one measurement.
const TRANSFERS: u64 = 10_000;
/// Transfers of each device under way.
const UNDER_WAY: u64 = 8;

/// What a web server's NIC moves: descriptors, headers and content to send, acknowledgments received.
fn web_traffic(n: u64, devices: u64) -> Transfer {
    let of = BytesByCategory::of;
    let (operation, bytes) = match n / devices % 4 {
        0 => (Operation::DmaRead, of(Category::Descriptor, 48)),
        1 => (Operation::DmaRead, of(Category::ProtocolHeader, 66)),
        2 => (Operation::DmaRead, of(Category::Content, 1_448)),
        _ => (Operation::DmaWrite, of(Category::Other, 66)),
    };
    Transfer {
        device: DeviceId((n % devices) as u8),
        operation,
        bytes,
        tag: n,
        reported: true,
    }
}

/// Goes on from `now` until `TRANSFERS` more are done.
fn run(bus: &mut dyn Interconnect, devices: u64, mut now: Time) -> Time {
    let mut submitted = 0;
    while submitted < UNDER_WAY * devices {
        bus.submit(now, web_traffic(submitted, devices));
        submitted += 1;
    }
    while let Some(at) = bus.poll_timeout() {
        now = at;
        bus.handle_timeout(now);
        while let Some(done) = bus.poll_done() {
            black_box(done);
            if submitted < TRANSFERS {
                bus.submit(now, web_traffic(submitted, devices));
                submitted += 1;
            }
        }
    }
    now
}

fn transfers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transfers");
    group.throughput(Throughput::Elements(TRANSFERS));
    for name in ["ideal", "pci-64-33", "pci-x-133", "pcie-3-x8", "pcie-4-x16"] {
        for devices in [1_u64, 2] {
            let config = InterconnectConfig::preset(name).expect("a preset");
            let mut bus = config.build(devices as usize).expect("a valid preset");
            let mut now = Time::ZERO;
            group.bench_function(BenchmarkId::new(name, devices), |bench| {
                bench.iter(|| now = run(bus.as_mut(), devices, now));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, transfers);
criterion_main!(benches);

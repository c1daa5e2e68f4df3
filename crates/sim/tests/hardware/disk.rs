//! The disk model: how long requests take, and their order.

use baton_sim::hardware::{Disk, DiskConfig, DiskQueue, DiskRequest};
use baton_wire::{Span, Time};

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Returns a disk with negligible rotation and no overhead, so that only seek and transfer take time.
fn plain(queue: DiskQueue) -> DiskConfig {
    DiskConfig {
        overhead_us: 0,
        rpm: 100_000,
        queue,
        ..DiskConfig::default()
    }
}

fn disk(config: &DiskConfig) -> Disk {
    Disk::new(config).expect("a disk")
}

fn request(position: u64, token: u64) -> DiskRequest {
    DiskRequest {
        position,
        bytes: 65_536,
        token,
    }
}

/// Serves all waiting requests in order.
fn serve(disk: &mut Disk) -> Vec<u64> {
    std::iter::from_fn(|| {
        let done = disk.next_done()?;
        disk.poll_done(done).map(|request| request.token)
    })
    .collect()
}

#[test]
fn a_sequential_read_costs_only_its_transfer() {
    let mut disk = disk(&DiskConfig {
        overhead_us: 100,
        ..DiskConfig::default()
    });
    disk.submit(at(0), request(0, 1));
    // 64 KiB at 50 MB/s.
    let transfer = Span::from_ns(65_536 * 20);
    assert_eq!(disk.next_done(), Some(at(100) + transfer));
    let first = disk.next_done().expect("a request in progress");
    assert_eq!(disk.poll_done(first), Some(request(0, 1)));
    disk.submit(first, request(65_536, 2));
    assert_eq!(
        disk.next_done(),
        Some(first + Span::from_us(100) + transfer)
    );
    assert_eq!(disk.busy(at(5_000)), Span::from_us(200) + transfer * 2);
}

#[test]
fn seek_time_grows_with_distance_up_to_a_full_stroke_and_a_revolution() {
    let config = plain(DiskQueue::Fcfs);
    let capacity = config.capacity_bytes();
    let cost = |position: u64| {
        let mut disk = disk(&config);
        disk.submit(at(0), request(position, 1));
        disk.next_done()
            .expect("a request in progress")
            .saturating_since(at(0))
    };
    let revolution = Span::from_us(600);
    let transfer = Span::from_ns(65_536 * 20);
    let full = Span::from_us(config.seek_full_us.into());
    let (near, middle, far) = (
        cost(10_000_000),
        cost(capacity / 4),
        cost(capacity - 65_536),
    );
    assert!(near >= Span::from_us(config.seek_track_us.into()));
    // A quarter of the distance takes half of the time for acceleration.
    assert!(
        near < middle && middle + revolution < far,
        "{near:?} {middle:?} {far:?}"
    );
    assert!(far <= full + revolution + transfer, "{far:?}");
}

#[test]
fn a_random_read_of_the_default_disk_takes_about_eight_milliseconds() {
    let config = DiskConfig::default();
    let pages = config.capacity_bytes() / 4096;
    let mut disk = disk(&config);
    let mut now = at(0);
    let mut state = 1_u64;
    for number in 0..500_u64 {
        // Knuth's linear congruential generator; its upper bits are random enough.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let page = (state >> 24) % pages;
        disk.submit(now, request(page * 4096, number));
        now = disk.next_done().expect("a request in progress");
        disk.poll_done(now).expect("the request is done");
    }
    let mean_us = now.saturating_since(at(0)).as_ps() / 500 / 1_000_000;
    assert!((7_500..10_500).contains(&mean_us), "{mean_us}");
    assert_eq!(disk.requests(), 500);
    assert_eq!(
        disk.busy(now),
        now.saturating_since(at(0)),
        "the disk is never idle"
    );
}

#[test]
fn first_come_first_served_keeps_the_order() {
    let mut disk = disk(&plain(DiskQueue::Fcfs));
    for (token, position) in [(1, 5_000_000_000), (2, 1_000_000_000), (3, 9_000_000_000)] {
        disk.submit(at(0), request(position, token));
    }
    assert_eq!(disk.queued(), 3);
    assert_eq!(serve(&mut disk), [1, 2, 3]);
}

#[test]
fn the_elevator_moves_up_and_restarts_at_the_bottom() {
    let mut disk = disk(&plain(DiskQueue::Elevator));
    for (token, position) in [
        (1, 5_000_000_000),
        (2, 1_000_000_000),
        (3, 9_000_000_000),
        (4, 7_000_000_000),
        (5, 2_000_000_000),
    ] {
        disk.submit(at(0), request(position, token));
    }
    assert_eq!(serve(&mut disk), [1, 4, 3, 2, 5]);
}

#[test]
fn impossible_disks_are_refused_by_field() {
    let wrong = |change: fn(&mut DiskConfig)| {
        let mut config = DiskConfig::default();
        change(&mut config);
        config.validate().expect_err("the disk is impossible").field
    };
    assert_eq!(wrong(|disk| disk.disks = 0), "disks");
    assert_eq!(wrong(|disk| disk.rpm = 0), "rpm");
    assert_eq!(
        wrong(|disk| disk.transfer_mb_per_s = 0),
        "transfer_mb_per_s"
    );
    assert_eq!(wrong(|disk| disk.seek_full_us = 10), "seek_full_us");
}

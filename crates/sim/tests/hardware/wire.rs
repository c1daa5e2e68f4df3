//! Order, timing and faults of a wire.

use baton_sim::hardware::{BurstConfig, Wire, WireConfig, WireCounters};
use baton_wire::{Span, Time};
use proptest::prelude::*;

fn wire(config: &WireConfig) -> Wire<u32> {
    Wire::new(config, 7).unwrap()
}

/// Returns all frames on the wire, with their arrival times.
fn drain(wire: &mut Wire<u32>) -> Vec<(Time, u32)> {
    std::iter::from_fn(|| {
        let arrival = wire.next_arrival()?;
        assert!(
            wire.receive(Time::from_ps(arrival.as_ps() - 1)).is_none(),
            "nothing arrives early"
        );
        Some((
            arrival,
            wire.receive(arrival).expect("a frame arrives at that time"),
        ))
    })
    .collect()
}

/// Sends `frames` frames of 1,518 bytes back to back, and returns all that arrive.
fn flood(config: &WireConfig, seed: u64, frames: u32) -> (Vec<(Time, u32)>, WireCounters) {
    let mut wire = Wire::new(config, seed).unwrap();
    for frame in 0..frames {
        wire.send(Time::ZERO, 1_518, frame);
    }
    (drain(&mut wire), wire.counters())
}

#[test]
fn frames_take_line_time_and_delay() {
    let mut wire = wire(&WireConfig::default());
    assert_eq!(wire.next_arrival(), None);
    wire.send(Time::ZERO, 1_518, 1);
    wire.send(Time::ZERO, 64, 2);
    assert_eq!(wire.in_flight(), 2);
    // 1,538 and 84 bytes of line time at 800 ps each, then 1 us of delay.
    assert_eq!(wire.free_at(), Time::from_ps((1_538 + 84) * 800));
    let arrivals = drain(&mut wire);
    assert_eq!(
        arrivals,
        [
            (Time::from_ps(1_230_400 + 1_000_000), 1),
            (Time::from_ps(1_297_600 + 1_000_000), 2)
        ]
    );
    let counters = wire.counters();
    assert_eq!(
        (
            counters.frames_sent,
            counters.bytes_sent,
            counters.frames_received
        ),
        (2, 1_582, 2)
    );
}

#[test]
fn idle_wire_sends_at_once() {
    let mut wire = wire(&WireConfig {
        rate_mbps: 1_000,
        delay_ns: 0,
        ..WireConfig::default()
    });
    wire.send(Time::ZERO, 64, 1);
    wire.send(Time::from_ps(5_000_000), 64, 2);
    assert_eq!(
        drain(&mut wire),
        [(Time::from_ps(672_000), 1), (Time::from_ps(5_672_000), 2)]
    );
}

#[test]
fn rate_is_kept_exactly() {
    // 1,538 bytes at 300 Mb/s are not a whole number of picoseconds.
    let (arrivals, _) = flood(
        &WireConfig {
            rate_mbps: 300,
            delay_ns: 0,
            ..WireConfig::default()
        },
        0,
        30_000,
    );
    assert_eq!(
        arrivals.last().unwrap().0,
        Time::from_ps(30_000 * 1_538 * 8 * 1_000_000 / 300)
    );
}

#[test]
fn full_queue_drops_and_counts() {
    let (arrivals, counters) = flood(
        &WireConfig {
            queue_frames: 10,
            ..WireConfig::default()
        },
        0,
        25,
    );
    assert_eq!(
        (
            arrivals.len(),
            counters.frames_sent,
            counters.dropped_queue_full
        ),
        (10, 10, 15)
    );
}

fn chance(frames: u64, of: u32) -> f64 {
    frames as f64 / f64::from(of)
}

#[test]
fn faults_happen_as_often_as_asked() {
    let config = WireConfig {
        loss: 0.02,
        duplicate: 0.01,
        reorder: 0.05,
        ..WireConfig::default()
    };
    for seed in 0..5 {
        let (arrivals, counters) = flood(&config, seed, 100_000);
        // Five standard deviations of the least likely event are 0.0016.
        assert!(
            (chance(counters.lost, 100_000) - 0.02).abs() < 0.003,
            "{counters:?}"
        );
        assert!(
            (chance(counters.duplicated, 98_000) - 0.01).abs() < 0.002,
            "{counters:?}"
        );
        assert!(
            (chance(counters.reordered, 98_000) - 0.05).abs() < 0.004,
            "{counters:?}"
        );
        assert_eq!(
            arrivals.len() as u64,
            100_000 - counters.lost + counters.duplicated
        );
        assert_eq!(arrivals.len() as u64, counters.frames_received);
    }
}

#[test]
fn same_seed_same_faults() {
    let config = WireConfig {
        loss: 0.1,
        duplicate: 0.1,
        reorder: 0.1,
        ..WireConfig::default()
    };
    assert_eq!(flood(&config, 3, 5_000), flood(&config, 3, 5_000));
    assert_ne!(flood(&config, 3, 5_000), flood(&config, 4, 5_000));
}

#[test]
fn certain_faults() {
    let (arrivals, counters) = flood(
        &WireConfig {
            loss: 1.0,
            ..WireConfig::default()
        },
        0,
        100,
    );
    assert_eq!((arrivals.len(), counters.lost), (0, 100));
    let (arrivals, _) = flood(
        &WireConfig {
            duplicate: 1.0,
            ..WireConfig::default()
        },
        0,
        3,
    );
    assert_eq!(
        arrivals.iter().map(|&(_, frame)| frame).collect::<Vec<_>>(),
        [0, 0, 1, 1, 2, 2]
    );
}

#[test]
fn late_frames_are_overtaken_and_arrive() {
    let (arrivals, counters) = flood(
        &WireConfig {
            reorder: 0.2,
            ..WireConfig::default()
        },
        0,
        1_000,
    );
    let mut frames: Vec<u32> = arrivals.iter().map(|&(_, frame)| frame).collect();
    assert!(counters.reordered > 100 && !frames.is_sorted());
    frames.sort_unstable();
    assert!(frames.into_iter().eq(0..1_000), "each frame arrives once");
}

#[test]
fn losses_come_in_bursts() {
    let config = WireConfig {
        burst: BurstConfig {
            enter: 0.01,
            leave: 0.25,
            loss: 1.0,
        },
        ..WireConfig::default()
    };
    let (arrivals, counters) = flood(&config, 1, 100_000);
    let gaps = arrivals
        .windows(2)
        .filter(|pair| pair[1].1 > pair[0].1 + 1)
        .count();
    let mean = counters.lost as f64 / gaps as f64;
    assert!(
        (3.5..4.5).contains(&mean),
        "{mean} frames are lost together"
    );
}

#[test]
fn corrupted_frames_are_dropped_and_jitter_delays_frames() {
    let config = WireConfig {
        corrupt: 0.1,
        jitter_us: 50,
        ..WireConfig::default()
    };
    let (arrivals, counters) = flood(&config, 1, 10_000);
    assert_eq!(arrivals.len() as u64, 10_000 - counters.corrupted);
    assert!((chance(counters.corrupted, 10_000) - 0.1).abs() < 0.02);
    let frames: Vec<u32> = arrivals.iter().map(|&(_, frame)| frame).collect();
    assert!(!frames.is_sorted(), "frames overtake each other");
}

proptest! {
    #[test]
    fn faultless_wire_keeps_all_in_order(
        rate_mbps in 1_u32..20_000,
        frames in prop::collection::vec((0_u64..3_000, 64_usize..9_000), 1..200),
    ) {
        let mut wire = wire(&WireConfig { rate_mbps, ..WireConfig::default() });
        let mut now = Time::ZERO;
        for (number, &(gap_ns, len)) in frames.iter().enumerate() {
            now += Span::from_ns(gap_ns);
            wire.send(now, len, number as u32);
        }
        let arrivals = drain(&mut wire);
        prop_assert!(arrivals.iter().map(|&(_, frame)| frame).eq(0..frames.len() as u32));
        prop_assert!(arrivals.is_sorted_by_key(|&(arrival, _)| arrival));
        prop_assert_eq!(wire.in_flight(), 0);
    }

    #[test]
    fn faulty_wire_delivers_in_time_order_and_only_what_was_sent(
        loss in 0.0..0.5_f64, duplicate in 0.0..0.5_f64, reorder in 0.0..0.5_f64,
        corrupt in 0.0..0.5_f64, jitter_us in 0..20_u32, seed in any::<u64>(),
    ) {
        let config = WireConfig { loss, duplicate, reorder, corrupt, jitter_us, reorder_delay_us: 5, ..WireConfig::default() };
        let (arrivals, counters) = flood(&config, seed, 300);
        prop_assert!(arrivals.is_sorted_by_key(|&(arrival, _)| arrival));
        let lost = counters.lost + counters.corrupted;
        prop_assert_eq!(arrivals.len() as u64, 300 - lost + counters.duplicated);
        for number in 0..300 {
            prop_assert!(arrivals.iter().filter(|&&(_, frame)| frame == number).count() <= 2);
        }
    }
}

//! Compares the model with the closed formulas of pcie-bench (Neugebauer et al., SIGCOMM 2018), and tests where tags or credits are the
//! bottleneck.

use baton_wire::{Span, Time};

use super::config::{CreditConfig, PciExpressConfig};
use super::{PciExpress, rate};
use crate::interconnect::testing::{closed_loop, run, transfer};
use crate::interconnect::{Interconnect, Operation, Way};

/// Returns a configuration with unlimited tags and credits, as the formulas assume.
fn unlimited(generation: u32, lanes: u32) -> PciExpressConfig {
    PciExpressConfig {
        generation,
        lanes,
        tags: 15_360,
        credits: CreditConfig {
            posted_headers: 0,
            posted_data: 0,
            non_posted_headers: 0,
            completion_headers: 0,
            completion_data: 0,
        },
        ..PciExpressConfig::default()
    }
}

/// Returns the payload rate in Gb/s of transfers of `bytes`.
fn measured(config: &PciExpressConfig, bytes: u64, kinds: &[Operation]) -> f64 {
    config.validate().unwrap();
    let mut link = PciExpress::new(config, 1);
    // Enough transfers in flight to fill the longest round trip.
    let under_way = 4_000_000_u64.div_ceil(bytes.max(64)).min(8_000);
    // Long enough that filling and draining the link is negligible.
    let per_100_us = rate::packets(config).bytes_in(Span::from_us(100)) / bytes;
    let count = 2 * under_way + per_100_us;
    let end = closed_loop(&mut link, under_way, count, |tag| {
        transfer(0, kinds[tag as usize % kinds.len()], bytes, tag)
    });
    let each = count as f64 / kinds.len() as f64;
    each * 8.0 * bytes as f64 / end.as_secs_f64() / 1e9
}

/// The formulas: what a transfer needs of each direction, per byte.
struct Formula {
    to_host: f64,
    to_device: f64,
    bytes: f64,
    rate_gbps: f64,
}

impl Formula {
    fn new(config: &PciExpressConfig, bytes: u64, kinds: &[Operation]) -> Self {
        let link = if config.generation >= 6 { 0 } else { 8 };
        let words = if config.long_addresses { 16 } else { 12 };
        let ecrc = if config.ecrc { 4 } else { 0 };
        let (request, completion) = (link + words + ecrc, link + 12 + ecrc);
        let (mut to_host, mut to_device) = (0, 0);
        if kinds.contains(&Operation::DmaWrite) {
            to_host += bytes + bytes.div_ceil(config.max_payload_bytes.into()) * request;
        }
        if kinds.contains(&Operation::DmaRead) {
            to_host += bytes.div_ceil(config.max_read_request_bytes.into()) * request;
            to_device += bytes + bytes.div_ceil(config.completion_bytes.into()) * completion;
        }
        let second = rate::packets(config).span(1_000_000_000_000).as_ps() as f64;
        Self {
            to_host: to_host as f64,
            to_device: to_device as f64,
            bytes: bytes as f64,
            rate_gbps: 8e15 / second,
        }
    }

    /// Returns the rate of the slower direction.
    fn gbps(&self) -> f64 {
        self.bytes / self.to_host.max(self.to_device) * self.rate_gbps
    }
}

const WRITE: &[Operation] = &[Operation::DmaWrite];
const READ: &[Operation] = &[Operation::DmaRead];
const BOTH: &[Operation] = &[Operation::DmaWrite, Operation::DmaRead];

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{what}: {found:.2} Gb/s, expected {expected:.2}"
    );
}

#[test]
fn the_published_table_is_reproduced() {
    let config = unlimited(3, 8);
    for (bytes, write, read, both) in [
        (64, 42.1, 44.1, 33.1),
        (256, 52.9, 53.7, 48.8),
        (1_024, 52.9, 53.7, 50.8),
        (1_500, 52.8, 53.6, 50.6),
    ] {
        for (kinds, expected) in [(WRITE, write), (READ, read), (BOTH, both)] {
            let what = format!("{bytes} bytes, {kinds:?}");
            let closed = Formula::new(&config, bytes, kinds).gbps();
            assert_near(closed, expected, &format!("formula, {what}"));
            assert_near(measured(&config, bytes, kinds), expected, &what);
        }
    }
}

#[test]
fn every_generation_and_width_meets_the_formulas() {
    for generation in 1..=6 {
        for lanes in [1, 2, 4, 8, 16, 32] {
            let config = unlimited(generation, lanes);
            for (bytes, kinds) in [(64, BOTH), (300, READ), (1_500, WRITE), (4_096, BOTH)] {
                let expected = Formula::new(&config, bytes, kinds).gbps();
                let what = format!("{generation} x{lanes}, {bytes} bytes, {kinds:?}");
                assert_near(measured(&config, bytes, kinds), expected, &what);
            }
        }
    }
}

#[test]
fn payload_request_and_completion_sizes_matter() {
    for (payload, request, completion, long, ecrc) in [
        (128, 128, 64, true, false),
        (128, 4_096, 128, false, true),
        (512, 512, 64, true, true),
        (4_096, 4_096, 4_096, false, false),
    ] {
        let config = PciExpressConfig {
            max_payload_bytes: payload,
            max_read_request_bytes: request,
            completion_bytes: completion,
            long_addresses: long,
            ecrc,
            ..unlimited(4, 4)
        };
        for kinds in [WRITE, READ, BOTH] {
            for bytes in [17, 512, 3_000] {
                let expected = Formula::new(&config, bytes, kinds).gbps();
                let what = format!("{config:?}, {bytes} bytes, {kinds:?}");
                assert_near(measured(&config, bytes, kinds), expected, &what);
            }
        }
    }
}

#[test]
fn reads_are_limited_by_tags_over_latency() {
    for tags in [1, 4, 16] {
        let config = PciExpressConfig {
            tags,
            read_latency_ns: 2_000,
            ..unlimited(4, 16)
        };
        let alone = {
            let mut link = PciExpress::new(&config, 1);
            link.submit(Time::ZERO, transfer(0, Operation::DmaRead, 512, 0));
            run(&mut link)[0].at.as_secs_f64()
        };
        // Little's law: this many requests of 512 bytes in each round trip.
        let expected = f64::from(tags) * 512.0 * 8.0 / alone / 1e9;
        assert_near(
            measured(&config, 1_024, READ),
            expected,
            &format!("{tags} tags"),
        );
    }
}

#[test]
fn writes_are_limited_by_credits_over_their_return() {
    for (headers, data, per_loop) in [(4, 0, 4 * 256), (0, 64, 64 * 16)] {
        let mut config = PciExpressConfig {
            credit_return_ns: 3_000,
            ..unlimited(4, 16)
        };
        (config.credits.posted_headers, config.credits.posted_data) = (headers, data);
        // A credit returns three microseconds after its packet was sent, which took ten nanoseconds.
        let expected = f64::from(per_loop) * 8.0 / 3_010.0;
        assert_near(measured(&config, 1_024, WRITE), expected, "writes");
    }
}

#[test]
fn completion_credits_limit_outstanding_reads() {
    let mut config = PciExpressConfig {
        read_latency_ns: 2_000,
        ..unlimited(4, 16)
    };
    let free = measured(&config, 512, READ);
    config.credits.completion_data = 64;
    let limited = measured(&config, 512, READ);
    // Two requests of 512 bytes at a time, a little more than two microseconds each.
    assert!(limited < free / 10.0, "{limited} of {free}");
    assert!((3.0..4.1).contains(&limited), "{limited}");
}

#[test]
fn a_read_takes_the_round_trip_and_a_write_one_way() {
    let config = PciExpressConfig::default();
    let ns = |ns| Time::ZERO + Span::from_ns(ns);
    let rate = rate::packets(&config);
    let mut link = PciExpress::new(&config, 1);
    link.submit(Time::ZERO, transfer(0, Operation::DmaRead, 64, 0));
    let read = run(&mut link)[0].at;
    assert_eq!(read, ns(120 + 260 + 120) + rate.span(24) + rate.span(84));
    let mut link = PciExpress::new(&config, 1);
    link.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 64, 0));
    assert_eq!(run(&mut link)[0].at, ns(120 + 100) + rate.span(88));
    let mut link = PciExpress::new(&config, 1);
    link.submit(Time::ZERO, transfer(0, Operation::RegisterWrite, 4, 0));
    assert_eq!(run(&mut link)[0].at, ns(120) + rate.span(28));
    let mut link = PciExpress::new(&config, 1);
    link.submit(Time::ZERO, transfer(0, Operation::RegisterRead, 4, 0));
    let answer = ns(120 + 200 + 120) + rate.span(24) + rate.span(24);
    assert_eq!(run(&mut link)[0].at, answer);
}

#[test]
fn a_misaligned_read_has_one_more_completion() {
    let done = |misaligned_bytes| {
        let config = PciExpressConfig {
            misaligned_bytes,
            ..PciExpressConfig::default()
        };
        let mut link = PciExpress::new(&config, 1);
        link.submit(Time::ZERO, transfer(0, Operation::DmaRead, 512, 0));
        (run(&mut link)[0].at, rate::packets(&config))
    };
    let ((aligned, rate), (misaligned, _)) = (done(0), done(8));
    assert_eq!(misaligned - aligned, rate.span(572) - rate.span(552));
}

#[test]
fn writes_pass_reads_that_wait_for_tags_and_reads_never_pass_writes() {
    let config = PciExpressConfig {
        tags: 1,
        ..PciExpressConfig::default()
    };
    let mut link = PciExpress::new(&config, 1);
    for tag in 0..4 {
        link.submit(Time::ZERO, transfer(0, Operation::DmaRead, 512, tag));
    }
    link.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 64, 4));
    let order: Vec<u64> = run(&mut link).iter().map(|done| done.tag).collect();
    assert_eq!(order, [4, 0, 1, 2, 3]);
    // There is no credit for the write, so the read behind it waits.
    let mut config = PciExpressConfig {
        credit_return_ns: 100_000,
        ..PciExpressConfig::default()
    };
    config.credits.posted_data = 16;
    let mut link = PciExpress::new(&config, 1);
    for tag in 0..2 {
        link.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 256, tag));
    }
    link.submit(Time::ZERO, transfer(0, Operation::DmaRead, 64, 2));
    let read = run(&mut link)[2];
    assert_eq!(read.tag, 2);
    assert!(read.at > Time::ZERO + Span::from_us(100));
}

#[test]
fn directions_and_links_are_independent() {
    let config = unlimited(3, 8);
    let one_way = measured(&config, 4_096, WRITE);
    let mut links = PciExpress::new(&config, 2);
    let end = closed_loop(&mut links, 200, 2_000, |tag| {
        let operation = BOTH[tag as usize / 2 % 2];
        transfer((tag % 2) as u8, operation, 4_096, tag)
    });
    let usage = links.usage(end);
    assert_eq!(usage.channels.len(), 4);
    for channel in &usage.channels {
        let gbps = 8.0 * channel.total().bytes.content as f64 / end.as_secs_f64() / 1e9;
        let least = if channel.way == Way::ToHost {
            0.9
        } else {
            0.85
        };
        assert!(gbps > least * one_way, "{channel:?}: {gbps} of {one_way}");
    }
    let shared = PciExpressConfig {
        shared_link: true,
        ..config
    };
    let mut link = PciExpress::new(&shared, 2);
    let end = closed_loop(&mut link, 200, 2_000, |tag| {
        transfer((tag % 2) as u8, Operation::DmaWrite, 4_096, tag)
    });
    let gbps = 8.0 * 2_000.0 * 4_096.0 / end.as_secs_f64() / 1e9;
    assert_near(gbps, one_way, "two devices on one link");
}

#[test]
fn without_overhead_transfers_take_the_time_of_the_raw_rate() {
    let config = PciExpressConfig {
        generation: 3,
        lanes: 8,
        ..PciExpressConfig::default()
    };
    let mut link = PciExpress::new(&config, 1);
    let end = closed_loop(&mut link, 100, 10_000, |tag| {
        transfer(0, Operation::DmaWrite, 256, tag)
    });
    let usage = link.usage(end);
    let up = &usage.channels[1];
    assert!(usage.utilisation_of(up) > 0.99);
    let time = up.total().time;
    let share = time.content.as_secs_f64() / time.total().as_secs_f64();
    // 256 of 280 bytes, and 57.88 of 63.02 Gb/s.
    assert!(
        (share - 256.0 / 280.0 * 57.88 / 63.015).abs() < 0.001,
        "{share}"
    );
}

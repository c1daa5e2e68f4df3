//! Results made up so that the right scale is known beforehand.

use super::*;
use baton_sim::config::Experiment;
use baton_sim::results::{
    ClientResults, Cycles, Distribution, Ended, HandoffResults, HostResults, LongRun, NicResults,
    OffloadResults, Results, TaskResults,
};
use std::collections::BTreeMap;

/// A run of 100 responses on a host of 100 MHz with a NIC of 10 MIPS; nothing took any work yet.
fn run() -> Results {
    let mut experiment = Experiment::default();
    experiment.host.clock_mhz = 100;
    experiment.nic.mips = 10;
    Results {
        version: 1,
        experiment,
        commit: String::new(),
        workload: BTreeMap::new(),
        warmup_s: 0.0,
        measured_s: 1.0,
        packets: 1000,
        ended: Ended::Complete,
        content_kept_off_bus_percent: None,
        long_run: LongRun::default(),
        clients: ClientResults {
            responses: 100,
            ..ClientResults::default()
        },
        host: HostResults::default(),
        nic: NicResults::default(),
        nics: Vec::new(),
        file_cache: None,
        disk: None,
        handoff: HandoffResults::default(),
        bus: Default::default(),
        interconnect: None,
        offload: OffloadResults::default(),
        series: Vec::new(),
    }
}

/// 1000 requests/s: 100,000 host cycles and, of a NIC that is half idle, 5,000 instructions each.
const PUBLISHED: Published = Published {
    config: "made up",
    request_rate: 1000.0,
    host_idle_percent: 0.0,
    nic_idle_percent: 50.0,
    send_delay_us: 10.0,
    receive_delay_us: 5.0,
    network_stack_percent: Some(60.0),
    response_ms: None,
};

/// Cycles per request in a layer.
fn layer(run: &mut Results, name: &str, execute: u64, l2: u64, memory: u64) {
    let cycles = Cycles {
        execute: execute * 100,
        l2: l2 * 100,
        memory: memory * 100,
        ..Cycles::default()
    };
    run.host.layers.insert(name.to_owned(), cycles);
}

/// How often a task is done for a request, and its instructions together.
fn task(run: &mut Results, name: &str, count: u64, instructions: u64) {
    let done = TaskResults {
        count: count * 100,
        instructions: instructions * 100,
    };
    run.nic.tasks.insert(name.to_owned(), done);
}

#[test]
fn host_scales_fill_their_shares_beside_the_stalls() {
    let mut run = run();
    run.experiment.host.scale.network_stack = 200;
    run.experiment.host.scale.application = 50;
    layer(&mut run, "tcp", 15_000, 1_000, 4_000);
    layer(&mut run, "driver", 5_000, 0, 5_000);
    layer(&mut run, "syscall", 10_000, 500, 1_500);
    layer(&mut run, "application", 9_000, 0, 0);
    // 60,000 cycles without 10,000 of stalls are two and a half times 20,000.
    assert_eq!(network_stack(&run, &PUBLISHED), 500);
    // 40,000 without 2,000 are twice 19,000.
    assert_eq!(application(&run, &PUBLISHED), 100);
}

#[test]
fn stalls_that_leave_no_room_give_the_least_scale() {
    let mut run = run();
    layer(&mut run, "tcp", 100, 0, 70_000);
    assert_eq!(network_stack(&run, &PUBLISHED), *SCALE_LIMITS.start());
}

#[test]
fn host_packets_make_the_nic_as_busy_as_published() {
    let mut run = run();
    run.experiment.nic.scale.host = 80;
    task(&mut run, "lookup", 4, 400);
    task(&mut run, "host_receive", 4, 1_600);
    task(&mut run, "host_send", 4, 2_000);
    task(&mut run, "timer", 1, 1_000);
    // 5,000 instructions without the timer's are as many as there are.
    assert_eq!(nic_host(&run, &PUBLISHED), 80);
    task(&mut run, "timer", 1, 3_000);
    assert_eq!(nic_host(&run, &PUBLISHED), 40);
}

/// A run whose requests take 100,000 host cycles, 50,000 of them for the bypass, as published.
fn bypass_run() -> Results {
    let mut run = run();
    run.clients.request_rate = PUBLISHED.request_rate;
    layer(&mut run, "bypass", 40_000, 1_000, 0);
    layer(&mut run, "handoff", 10_000, 0, 1_000);
    layer(&mut run, "application", 48_000, 0, 0);
    run
}

#[test]
fn a_scale_that_meets_both_numbers_stays() {
    let run = bypass_run();
    assert_eq!(bypass((&run, &PUBLISHED), (&run, &PUBLISHED)), 100);
    let mut run = run;
    task(&mut run, "transmit", 1, 5_000);
    run.nic.idle_percent = PUBLISHED.nic_idle_percent;
    assert_eq!(nic_offload((&run, &PUBLISHED), (&run, &PUBLISHED)), 100);
}

#[test]
fn the_bypass_is_scaled_with_the_driver_s_part() {
    let mut run = run();
    run.experiment.host.instructions.driver_command = 200;
    run.experiment.host.instructions.driver_event = 100;
    run.experiment.host.scale.bypass = 50;
    layer(&mut run, "bypass", 3_000, 1_000, 0);
    layer(&mut run, "handoff", 2_000, 0, 1_000);
    // The driver's part is 6 x 200 + 8 x 100 at 50 %: 1,000 of its 11,000 cycles.
    layer(&mut run, "driver", 11_000, 0, 0);
    task(&mut run, "command", 5, 0);
    task(&mut run, "handoff", 1, 0);
    task(&mut run, "event", 8, 0);
    let work = bypass_work(&run);
    assert_eq!((work.scaled, work.fixed), (6_000.0, 12_000.0));
}

#[test]
fn one_number_alone_is_met_in_one_step_if_errors_are_linear() {
    // Half of the host's time goes into scaled work. It is 20 points less idle than published: two fifths of that.
    let work = Work {
        scaled: 50_000.0,
        fixed: 10_000.0,
    };
    let too_busy = Pull::of_idle(work, (40.0, 60.0), 1000.0 / 100e6);
    assert!((least_squares(200, &[too_busy]) - 120.0).abs() < 1e-9);
    // A number without leverage changes nothing.
    let idle = Work {
        scaled: 0.0,
        fixed: 10_000.0,
    };
    let lost = Pull::of_idle(idle, (10.0, 60.0), 1000.0 / 100e6);
    assert!((least_squares(200, &[too_busy, lost]) - 120.0).abs() < 1e-9);
    assert!((least_squares(200, &[lost]) - 200.0).abs() < 1e-9);
}

#[test]
fn a_rate_that_is_too_high_asks_for_more_work() {
    let mut run = bypass_run();
    run.clients.request_rate = 1.1 * PUBLISHED.request_rate;
    let pull = Pull::of_rate(bypass_work(&run), &run, &PUBLISHED);
    // One tolerance too high; doubling half of the work takes five off, to first order.
    assert!((pull.error - 1.0).abs() < 1e-9 && (pull.slope + 5.0).abs() < 1e-9);
    assert!((least_squares(100, &[pull]) - 120.0).abs() < 1e-9);
}

#[test]
fn numbers_that_disagree_are_both_missed_by_least_squares() {
    let near = |error| Pull { error, slope: -1.0 };
    assert!((least_squares(100, &[near(0.1), near(-0.1)]) - 100.0).abs() < 1e-9);
    assert!((least_squares(100, &[near(0.3), near(-0.1)]) - 110.0).abs() < 1e-9);
    let strong = Pull {
        error: 0.3,
        slope: -3.0,
    };
    // Alone they would ask for +10 % and -10 %; the one with three times the slope weighs nine times.
    assert!((least_squares(100, &[strong, near(-0.1)]) - 108.0).abs() < 1e-9);
}

#[test]
fn the_bypass_stays_within_limits() {
    let mut run = bypass_run();
    // So little work can never make the host as busy, or as idle, as it should be.
    layer(&mut run, "bypass", 1_000, 0, 0);
    layer(&mut run, "handoff", 0, 0, 0);
    layer(&mut run, "application", 99_000, 0, 0);
    let bypass = |run: &Results| bypass((run, &PUBLISHED), (run, &PUBLISHED));
    run.host.idle_percent = 90.0;
    assert_eq!(bypass(&run), *BYPASS_LIMITS.end());
    run.host.idle_percent = -90.0;
    assert_eq!(bypass(&run), *BYPASS_LIMITS.start());
}

#[test]
fn a_scale_of_nothing_stays() {
    let mut run = run();
    run.experiment.nic.scale.host = 70;
    run.experiment.host.scale.network_stack = 120;
    assert_eq!(nic_host(&run, &PUBLISHED), 70);
    assert_eq!(network_stack(&run, &PUBLISHED), 120);
}

#[test]
fn half_a_delay_is_as_far_as_twice() {
    let distance = |send: f64, receive: f64| {
        let mut run = run();
        let median = |p50| Distribution {
            p50: Some(p50),
            ..Distribution::default()
        };
        run.nic.send_delay_us = median(send);
        run.nic.receive_delay_us = median(receive);
        delay_distance(&run, &PUBLISHED)
    };
    assert!(distance(10.0, 5.0).abs() < 1e-12);
    assert!((distance(20.0, 5.0) - distance(5.0, 5.0)).abs() < 1e-12);
    assert!((distance(20.0, 5.0) - distance(10.0, 10.0)).abs() < 1e-12);
    assert!(
        distance(0.0, 5.0).is_infinite(),
        "no packet was seen: as far as can be"
    );
}

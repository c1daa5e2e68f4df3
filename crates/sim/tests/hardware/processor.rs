//! Timing and utilisation of the processors.

use baton_sim::hardware::{NicProcessor, NicProcessorConfig, Processor, ProcessorConfig};
use baton_wire::{Span, Time};

fn at_ns(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

fn host(clock_mhz: u32, instructions_per_cycle: u32) -> Processor {
    Processor::new(&ProcessorConfig {
        clock_mhz,
        instructions_per_cycle,
    })
    .unwrap()
}

fn nic(mips: u32) -> NicProcessor {
    NicProcessor::new(&NicProcessorConfig { mips }).unwrap()
}

#[test]
fn host_work_is_instructions_and_stalls() {
    let mut host = host(2_000, 1);
    assert_eq!(host.run(Time::ZERO, 100, 195), Time::from_ps(295 * 500));
    assert_eq!(host.cycle_at(Time::from_ps(295 * 500)), 295);
    assert_eq!(host.cycle_at(Time::from_ps(295 * 500 - 1)), 294);
}

#[test]
fn wider_processors_save_instructions_not_stalls() {
    let mut host = host(1_000, 2);
    assert_eq!(host.run(Time::ZERO, 100, 10), at_ns(60));
    assert_eq!(host.run(at_ns(60), 1, 0), Time::from_ps(60_500));
}

#[test]
fn nic_work_is_instructions() {
    assert_eq!(nic(400).run(Time::ZERO, 1), Time::from_ps(2_500));
    assert_eq!(nic(800).run(at_ns(10), 1_000), at_ns(1_260));
}

#[test]
fn odd_clocks_do_not_drift() {
    let mut host = host(1_900, 1);
    let mut end = Time::ZERO;
    for piece in 0..1_000_000 {
        end = host.run(end, 1 + piece % 3, 1);
    }
    // One instruction and one stall per piece, plus one instruction for each unit of the sum of n mod 3.
    assert_eq!(end.as_ps(), (2_000_000 + 999_999) * 1_000_000 / 1_900);
}

#[test]
fn work_queues_behind_earlier_work() {
    let mut nic = nic(1_000);
    assert_eq!(nic.run(at_ns(100), 50), at_ns(150));
    assert_eq!(nic.run(at_ns(120), 50), at_ns(200));
    assert_eq!(nic.occupancy.free_at(), at_ns(200));
    assert_eq!(nic.run(at_ns(300), 10), at_ns(310));
}

#[test]
fn busy_and_idle_fill_the_time() {
    let mut host = host(1_000, 1);
    host.run(at_ns(100), 50, 0);
    host.run(at_ns(200), 100, 0);
    for (ns, busy) in [(200, 50), (250, 100), (300, 150), (400, 150)] {
        assert_eq!(
            host.occupancy.busy(at_ns(ns)),
            Span::from_ns(busy),
            "busy at {ns}"
        );
        assert_eq!(
            host.occupancy.idle(at_ns(ns)),
            Span::from_ns(ns - busy),
            "idle at {ns}"
        );
    }
}

#[test]
fn measurement_begins_in_the_middle_of_work() {
    let mut nic = nic(1_000);
    nic.run(at_ns(0), 100);
    nic.occupancy.start_measurement(at_ns(60));
    assert_eq!(nic.occupancy.busy(at_ns(60)), Span::ZERO);
    assert_eq!(
        (nic.occupancy.busy(at_ns(80)), nic.occupancy.idle(at_ns(80))),
        (Span::from_ns(20), Span::ZERO)
    );
    assert_eq!(
        (
            nic.occupancy.busy(at_ns(200)),
            nic.occupancy.idle(at_ns(200))
        ),
        (Span::from_ns(40), Span::from_ns(100))
    );
}

//! Tests exact clock counts, and the traffic mix of the data-caching paper.

use baton_wire::{Span, Time};

use super::{PciConfig, PciXConfig, SharedBus};
use crate::interconnect::testing::{closed_loop, run, transfer};
use crate::interconnect::{DeviceId, Interconnect, Operation, Transfer};
use crate::{BytesByCategory, Category};

/// Returns `clocks` of 33 MHz.
fn clocks(clocks: u64) -> Time {
    Time::from_ps(30_000 * clocks)
}

fn pci(change: impl FnOnce(&mut PciConfig)) -> SharedBus {
    let mut config = PciConfig {
        posted_write_ns: 0,
        ..PciConfig::default()
    };
    change(&mut config);
    config.validate().unwrap();
    SharedBus::pci(&config, 2)
}

/// Returns a PCI-X bus at 133 MHz, 7.5 ns per clock, without arbitration.
fn pci_x(change: impl FnOnce(&mut PciXConfig)) -> SharedBus {
    let mut config = PciXConfig {
        arbitration_clocks: 0,
        posted_write_ns: 0,
        ..PciXConfig::default()
    };
    change(&mut config);
    config.validate().unwrap();
    SharedBus::pci_x(&config, 2)
}

fn x_clocks(clocks: u64) -> Time {
    Time::from_ps(7_500 * clocks)
}

/// Returns the completion times of all transfers, by tag.
fn done_at(bus: &mut SharedBus) -> Vec<Time> {
    let mut all = run(bus);
    all.sort_by_key(|done| done.tag);
    all.iter().map(|done| done.at).collect()
}

#[test]
fn one_transaction_takes_its_phases() {
    // Arbitration 2, address 1, decoding 1, eight words.
    let mut bus = pci(|_| ());
    bus.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 64, 0));
    assert_eq!(done_at(&mut bus), [clocks(12)]);
    // Arbitration 2, address 1, turnaround 1, memory 10, eight words.
    let mut bus = pci(|_| ());
    bus.submit(Time::ZERO, transfer(0, Operation::DmaRead, 64, 0));
    assert_eq!(done_at(&mut bus), [clocks(22)]);
    // A second address phase, 32 bits, one wait state: sixteen words of two clocks.
    let mut bus = pci(|config| {
        (config.width_bits, config.data_wait_clocks) = (32, 1);
        config.dual_address_cycle = true;
    });
    bus.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 64, 0));
    assert_eq!(done_at(&mut bus), [clocks(2 + 2 + 1 + 32)]);
    // Transactions start at a clock edge.
    let mut bus = pci(|_| ());
    bus.submit(Time::from_ps(1), transfer(0, Operation::DmaWrite, 8, 0));
    assert_eq!(done_at(&mut bus), [clocks(1 + 2 + 2 + 1)]);
}

#[test]
fn the_processor_uses_the_bus_and_a_pin_does_not() {
    let mut bus = pci(|_| ());
    bus.submit(Time::ZERO, transfer(0, Operation::RegisterWrite, 4, 0));
    bus.submit(Time::ZERO, transfer(1, Operation::RegisterRead, 4, 1));
    bus.submit(Time::ZERO, transfer(0, Operation::Interrupt, 4, 2));
    // Address, wait, word; idle; address, turnaround, eight waits, word.
    let read = 2 + 3 + 1 + 11;
    assert_eq!(done_at(&mut bus), [clocks(5), clocks(read), Time::ZERO]);
    let usage = bus.usage(clocks(100));
    assert_eq!(
        usage.channels[0].busy(),
        Span::from_ps(30_000 * (3 + 1 + 11 + 1))
    );
    assert_eq!(usage.device(DeviceId(0)).transfers.interrupt, 1);
    assert_eq!(usage.device(DeviceId(1)).transfers.register_read, 1);
}

#[test]
fn a_read_is_cut_where_the_bridge_disconnects() {
    let mut bus = pci(|config| config.read_next_wait_clocks = 5);
    bus.submit(Time::ZERO, transfer(0, Operation::DmaRead, 1_500, 0));
    // 64, 64 and 60 words; the data of the second and third burst were read ahead.
    let (first, next) = (12 + 64 + 1, 7 + 64 + 1);
    assert_eq!(done_at(&mut bus), [clocks(2 + first + next + 7 + 60)]);
    let usage = bus.usage(clocks(1_000));
    let time = usage.total().time;
    assert_eq!(time.content, Span::from_ps(1_500 * 3_750));
    let overhead = 12 + 7 + 7 + 3;
    assert_eq!(time.overhead, Span::from_ps(30_000 * overhead + 4 * 3_750));
}

#[test]
fn the_latency_timer_ends_a_burst_that_another_waits_for() {
    let mut bus = pci(|_| ());
    bus.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 2_048, 0));
    bus.submit(clocks(20), transfer(1, Operation::DmaWrite, 8, 1));
    // The first burst starts at clock 2 and must end 64 clocks later, at 66; then an idle clock, and the other's three.
    let other = 66 + 1 + 3;
    // 62 words were moved; the other 194 follow after an idle clock and a head of two clocks.
    let rest = other + 1 + 2 + 194;
    assert_eq!(done_at(&mut bus), [clocks(rest), clocks(other)]);
    // A timer that has expired yields at the next clock edge.
    let mut bus = pci(|_| ());
    bus.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 2_048, 0));
    bus.submit(clocks(100), transfer(1, Operation::DmaWrite, 8, 1));
    assert_eq!(done_at(&mut bus)[1], clocks(101 + 1 + 3));
}

#[test]
fn a_delayed_read_leaves_the_bus_to_others() {
    let mut bus = pci(|config| {
        (config.delayed_reads, config.read_wait_clocks) = (true, 40);
    });
    bus.submit(Time::ZERO, transfer(0, Operation::DmaRead, 64, 0));
    bus.submit(Time::ZERO, transfer(1, Operation::DmaWrite, 64, 1));
    let at = done_at(&mut bus);
    // The attempt of three clocks, an idle clock, then the write.
    assert_eq!(at[1], clocks(2 + 3 + 1 + 10));
    // The data are available at clock 42. The first attempt after that finds them, at most an attempt and its interval later.
    assert!(
        at[0] >= clocks(42 + 2 + 8) && at[0] <= clocks(42 + 8 + 2 + 8),
        "{:?}",
        at[0]
    );
    let retries = bus.usage(clocks(100)).device(DeviceId(0)).time.overhead;
    assert!(retries > Span::from_ps(30_000 * 4 * 3), "{retries:?}");
}

#[test]
fn a_split_read_leaves_the_bus_to_others() {
    let mut bus = pci_x(|_| ());
    bus.submit(Time::ZERO, transfer(0, Operation::DmaRead, 1_024, 0));
    bus.submit(Time::ZERO, transfer(1, Operation::DmaWrite, 64, 1));
    // Address, attributes, response of two: the request ends at clock 4, its data are available 400 ns later.
    let ready = x_clocks(4) + Span::from_ns(400);
    let edge = ready.as_ps().div_ceil(7_500);
    assert_eq!(
        done_at(&mut bus),
        [x_clocks(edge + 4 + 128), x_clocks(4 + 1 + 4 + 8)]
    );
}

#[test]
fn split_reads_are_limited_to_the_allowed_number() {
    let rate = |outstanding| {
        let mut bus = pci_x(|config| {
            (config.outstanding_splits, config.memory_latency_ns) = (outstanding, 10_000);
        });
        let end = closed_loop(&mut bus, 64, 400, |tag| {
            transfer(0, Operation::DmaRead, 512, tag)
        });
        400.0 * 512.0 / end.as_secs_f64()
    };
    // Little's law applies if the latency is much longer than the time on the bus.
    for outstanding in [1, 2, 4] {
        let expected = f64::from(outstanding) * 512.0 / 10.6e-6;
        let found = rate(outstanding);
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "{outstanding}: {found} of {expected}"
        );
    }
}

#[test]
fn pci_x_bursts_end_on_a_multiple_of_128() {
    let mut bus = pci_x(|config| config.latency_timer_clocks = 8);
    bus.submit(Time::ZERO, transfer(0, Operation::DmaWrite, 2_048, 0));
    bus.submit(x_clocks(1), transfer(1, Operation::DmaWrite, 8, 1));
    // The timer expires after four words; the burst continues to the sixteenth.
    assert_eq!(done_at(&mut bus)[1], x_clocks(4 + 16 + 1 + 4 + 1));
}

#[test]
fn the_bus_is_never_idle_while_a_device_waits() {
    for hidden_arbitration in [true, false] {
        let mut bus = pci(|config| config.hidden_arbitration = hidden_arbitration);
        for tag in 0..60 {
            let operation = [
                Operation::DmaRead,
                Operation::DmaWrite,
                Operation::RegisterWrite,
            ][tag as usize % 3];
            bus.submit(
                Time::ZERO,
                transfer((tag % 2) as u8, operation, 40 * tag, tag),
            );
        }
        let end = done_at(&mut bus).into_iter().max().unwrap() + Span::from_ps(30_000);
        let usage = bus.usage(end);
        let arbitration = if hidden_arbitration { 60_000 } else { 0 };
        assert_eq!(
            usage.channels[0].busy() + Span::from_ps(arbitration),
            usage.elapsed
        );
    }
}

/// Returns the `n`-th part of a NIC's traffic: full packets to send with their headers and descriptors, and an acknowledgment received and
/// a doorbell for every two of them.
fn web_traffic(n: u64) -> Transfer {
    let device = DeviceId((n % 2) as u8);
    let of = BytesByCategory::of;
    let (operation, bytes) = match n / 2 % 10 {
        0 | 5 => (Operation::DmaRead, of(Category::Descriptor, 48)),
        1 | 6 => (Operation::DmaRead, of(Category::ProtocolHeader, 66)),
        2 => (Operation::DmaRead, of(Category::Content, 1_448)),
        // A packet that crosses the end of a page is fetched in two parts.
        7 => (Operation::DmaRead, of(Category::Content, 600)),
        8 => (Operation::DmaRead, of(Category::Content, 848)),
        3 => (Operation::DmaWrite, of(Category::Other, 66)),
        4 => (Operation::DmaWrite, of(Category::Descriptor, 32)),
        _ => (Operation::RegisterWrite, of(Category::Other, 4)),
    };
    Transfer {
        device,
        operation,
        bytes,
        tag: n,
        reported: true,
    }
}

#[test]
fn full_packets_have_the_published_share_of_content() {
    let mut bus = SharedBus::pci(&PciConfig::default(), 2);
    let end = closed_loop(&mut bus, 16, 100_000, web_traffic);
    let usage = bus.usage(end);
    let shares = usage.shares();
    let traffic = shares.total();
    assert!(traffic > 0.98, "saturated: {traffic}");
    let content = shares.content / traffic;
    let overhead = shares.overhead / traffic;
    assert!((0.55..0.65).contains(&content), "content {content}");
    assert!((0.25..0.35).contains(&overhead), "overhead {overhead}");
    let gbps = 8.0 * usage.total().bytes.content as f64 / usage.elapsed.as_secs_f64() / 1e9;
    let at_95_percent = gbps * 0.95 / traffic;
    assert!(
        (1.14..1.26).contains(&at_95_percent),
        "{at_95_percent} Gb/s"
    );
}

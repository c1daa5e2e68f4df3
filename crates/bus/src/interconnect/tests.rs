//! Properties of every interconnect under any load.

use baton_wire::{Span, Time};
use proptest::prelude::*;

use super::testing::{run, transfer};
use super::{
    CreditConfig, DeviceId, Done, Interconnect, InterconnectConfig, Operation, PciConfig,
    PciExpressConfig, PciXConfig, Piece, Transfer, Usage,
};
use crate::{BytesByCategory, Category};

const DEVICES: u8 = 3;

fn models() -> Vec<InterconnectConfig> {
    let pci = PciConfig::default();
    let link = PciExpressConfig::default();
    vec![
        InterconnectConfig::Ideal,
        InterconnectConfig::Pci(pci.clone()),
        InterconnectConfig::Pci(PciConfig {
            width_bits: 32,
            hidden_arbitration: false,
            latency_timer_clocks: 16,
            data_wait_clocks: 1,
            dual_address_cycle: true,
            read_burst_bytes: 64,
            read_next_wait_clocks: 2,
            ..pci.clone()
        }),
        InterconnectConfig::Pci(PciConfig {
            width_bits: 32,
            latency_timer_clocks: 0,
            idle_clocks: 0,
            read_next_wait_clocks: 20,
            ..pci.clone()
        }),
        InterconnectConfig::Pci(PciConfig {
            clock_mhz: 66,
            delayed_reads: true,
            read_wait_clocks: 40,
            ..pci
        }),
        InterconnectConfig::PciX(PciXConfig::default()),
        InterconnectConfig::PciX(PciXConfig {
            outstanding_splits: 1,
            max_read_bytes: 512,
            latency_timer_clocks: 8,
            burst_bytes: 256,
            ..PciXConfig::default()
        }),
        InterconnectConfig::PciExpress(link.clone()),
        InterconnectConfig::PciExpress(PciExpressConfig {
            generation: 1,
            lanes: 1,
            shared_link: true,
            tags: 2,
            completion_bytes: 64,
            misaligned_bytes: 12,
            ecrc: true,
            credits: CreditConfig {
                posted_headers: 2,
                posted_data: 16,
                non_posted_headers: 1,
                completion_headers: 9,
                completion_data: 40,
            },
            ..link.clone()
        }),
        InterconnectConfig::PciExpress(PciExpressConfig {
            generation: 6,
            lanes: 32,
            shared_link: true,
            ..link
        }),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::DmaRead),
        4 => Just(Operation::DmaWrite),
        1 => Just(Operation::RegisterWrite),
        1 => Just(Operation::RegisterRead),
        1 => Just(Operation::Interrupt),
    ]
}

/// Generates transfers, each with the time since the previous one.
fn script() -> impl Strategy<Value = Vec<(Span, Transfer)>> {
    let one = (
        prop_oneof![Just(0_u64), 0..200_000_u64, 0..20_000_000_u64],
        0..DEVICES,
        operation(),
        prop_oneof![Just(0_u64), 1..70_u64, 1..5_000_u64],
        0..200_u64,
        prop::bool::weighted(0.7),
    );
    proptest::collection::vec(one, 1..60).prop_map(|steps| {
        let numbered = steps.into_iter().enumerate();
        numbered
            .map(
                |(tag, (gap, device, operation, content, header, reported))| {
                    // A register is one or two words.
                    let (content, header) = if operation.is_register_access() {
                        (4, 4 * (header % 2))
                    } else {
                        (content, header)
                    };
                    let transfer = Transfer {
                        device: DeviceId(device),
                        operation,
                        bytes: BytesByCategory::of(Category::Content, content)
                            .with(Category::ProtocolHeader, header),
                        tag: tag as u64,
                        reported,
                    };
                    (Span::from_ps(gap), transfer)
                },
            )
            .collect()
    })
}

/// Plays a script, with a call to `handle_timeout` at each bound, and `extra` calls between any two transfers.
fn play(bus: &mut dyn Interconnect, script: &[(Span, Transfer)], extra: u64) -> Vec<Done> {
    let (mut now, mut all) = (Time::ZERO, Vec::new());
    for &(gap, transfer) in script {
        let next = now + gap;
        for part in 1..=extra {
            now += gap * part / (extra + 1) - gap * (part - 1) / (extra + 1);
            bus.handle_timeout(now);
            all.extend(std::iter::from_fn(|| bus.poll_done()));
        }
        while extra > 0
            && let Some(at) = bus.poll_timeout().filter(|&at| at <= next)
        {
            now = at.max(now);
            bus.handle_timeout(now);
            all.extend(std::iter::from_fn(|| bus.poll_done()));
        }
        now = next;
        bus.submit(now, transfer);
    }
    all.extend(std::iter::from_fn(|| bus.poll_done()));
    all.extend(run(bus));
    all
}

fn submitted_at(script: &[(Span, Transfer)]) -> Vec<Time> {
    let steps = script.iter();
    steps
        .scan(Time::ZERO, |now, &(gap, _)| {
            *now += gap;
            Some(*now)
        })
        .collect()
}

/// Asserts that reads of a device stay in order, as do writes and messages, and register accesses of each kind.
fn assert_in_order(script: &[(Span, Transfer)], all: &[Done]) {
    let class = |operation: Operation| match operation {
        Operation::DmaRead => 0,
        Operation::DmaWrite => 1,
        Operation::RegisterWrite => 2,
        Operation::RegisterRead => 3,
        Operation::Interrupt => 4,
    };
    let mut last = [[None; 5]; DEVICES as usize];
    for done in all {
        let operation = script[done.tag as usize].1.operation;
        let last = &mut last[done.device.index()][class(operation)];
        assert!(*last < Some(done.tag), "{operation:?} out of order");
        *last = Some(done.tag);
    }
}

fn assert_books(bus: &dyn Interconnect, script: &[(Span, Transfer)], end: Time) {
    let usage = bus.usage(end);
    let mut bytes = BytesByCategory::default();
    for (_, transfer) in script {
        bytes += transfer.bytes;
    }
    // An interrupt pin carries no bytes.
    let pins: u64 = script
        .iter()
        .filter(|(_, transfer)| transfer.operation == Operation::Interrupt)
        .map(|(_, transfer)| transfer.bytes.total())
        .sum();
    let total = usage.total();
    assert!(
        total.bytes == bytes || total.bytes.total() + pins == bytes.total(),
        "bytes are conserved"
    );
    assert_eq!(total.transfers.total(), script.len() as u64);
    for channel in &usage.channels {
        assert!(
            channel.busy() <= usage.elapsed,
            "busy for more than the elapsed time"
        );
    }
    let devices = (0..DEVICES).map(|device| usage.device(DeviceId(device)).transfers.total());
    assert_eq!(devices.sum::<u64>(), script.len() as u64);
}

proptest! {
    #[test]
    fn every_transfer_is_done_once_and_in_order(script in script()) {
        let times = submitted_at(&script);
        for config in models() {
            let mut bus = config.build(DEVICES.into()).unwrap();
            let all = play(bus.as_mut(), &script, 0);
            let mut tags: Vec<u64> = all.iter().map(|done| done.tag).collect();
            tags.sort_unstable();
            let reported: Vec<u64> = script
                .iter()
                .map(|(_, transfer)| transfer)
                .filter(|transfer| transfer.reported)
                .map(|transfer| transfer.tag)
                .collect();
            prop_assert_eq!(tags, reported);
            prop_assert!(all.is_sorted_by_key(|done| done.at));
            for done in &all {
                prop_assert!(done.at >= times[done.tag as usize]);
                prop_assert_eq!(done.device, script[done.tag as usize].1.device);
            }
            assert_in_order(&script, &all);
            // Transfers that are not reported complete some time later.
            let end = times.iter().copied().chain(all.iter().map(|done| done.at)).max();
            let end = end.unwrap() + Span::from_secs(1);
            bus.handle_timeout(end);
            assert_books(bus.as_ref(), &script, end);
        }
    }

    #[test]
    fn results_do_not_depend_on_how_often_they_are_polled(script in script(), extra in 1..5_u64) {
        for config in models() {
            let mut seldom = config.build(DEVICES.into()).unwrap();
            let mut often = config.build(DEVICES.into()).unwrap();
            let sorted = |mut all: Vec<Done>| {
                all.sort_by_key(|done| (done.at, done.device, done.tag));
                all
            };
            prop_assert_eq!(
                sorted(play(seldom.as_mut(), &script, 0)),
                sorted(play(often.as_mut(), &script, extra)),
                "{:?}", config
            );
        }
    }
}

/// The time before the reads of a scatter list, and a transfer that may delay them.
type Gap = (Span, Transfer);

/// Plays scatter lists of the first device, as a whole or read by read, among other transfers. Returns the completions and the usage.
fn play_lists(
    bus: &mut dyn Interconnect,
    lists: &[(Gap, Vec<Piece>)],
    whole: bool,
) -> (Vec<Done>, Usage) {
    let mut now = Time::ZERO;
    for ((gap, other), pieces) in lists {
        now += *gap;
        bus.submit(now, *other);
        let tag = 1_000 + other.tag;
        if whole {
            bus.submit_reads(now, DeviceId(0), pieces, tag);
            continue;
        }
        for (place, piece) in (1..).zip(pieces) {
            let last = place == pieces.len();
            bus.submit(now, piece.read_by(DeviceId(0), tag, last));
        }
    }
    let mut all: Vec<Done> = std::iter::from_fn(|| bus.poll_done()).collect();
    all.extend(run(bus));
    let end = all.iter().map(|done| done.at).max().unwrap_or(now) + Span::from_secs(1);
    bus.handle_timeout(end);
    (all, bus.usage(end))
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (1..5_000_u32, prop::bool::ANY).prop_map(|(bytes, header)| Piece {
        category: if header {
            Category::ProtocolHeader
        } else {
            Category::Content
        },
        bytes,
    });
    proptest::collection::vec(piece, 1..5)
}

proptest! {
    #[test]
    fn a_scatter_list_behaves_like_its_reads(script in script(), lists in proptest::collection::vec(pieces(), 60)) {
        let lists: Vec<_> = script.into_iter().zip(lists).collect();
        for config in models() {
            let play = |whole| {
                let mut bus = config.build(DEVICES.into()).unwrap();
                play_lists(bus.as_mut(), &lists, whole)
            };
            let (whole, single) = (play(true), play(false));
            // On PCI Express, several reads may be sent as one, and register writes then come before or after all of them.
            let exact = !matches!(config, InterconnectConfig::PciExpress(_));
            if exact {
                prop_assert_eq!(&whole.0, &single.0, "{:?}", &config);
                prop_assert_eq!(&whole.1, &single.1, "{:?}", &config);
            }
            prop_assert_eq!(whole.0.len(), single.0.len());
            let traffic = (whole.1.total(), single.1.total());
            prop_assert_eq!(traffic.0.bytes, traffic.1.bytes);
            prop_assert_eq!(traffic.0.transfers, traffic.1.transfers);
        }
    }
}

#[test]
fn devices_take_turns() {
    for config in models() {
        let mut bus = config.build(DEVICES.into()).unwrap();
        for round in 0..50 {
            for device in 0..DEVICES {
                let tag = round * u64::from(DEVICES) + u64::from(device);
                bus.submit(Time::ZERO, transfer(device, Operation::DmaWrite, 128, tag));
            }
        }
        let mut counts = [0_i64; DEVICES as usize];
        for done in run(bus.as_mut()) {
            counts[done.device.index()] += 1;
            // The ideal interconnect completes transfers in the order of submission, which is fair, too.
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{counts:?} on {config:?}");
        }
    }
}

#[test]
fn counts_restart() {
    for config in models() {
        let mut bus = config.build(DEVICES.into()).unwrap();
        bus.submit(Time::ZERO, transfer(0, Operation::DmaRead, 1_500, 0));
        let first = run(bus.as_mut()).last().unwrap().at + Span::from_us(10);
        bus.handle_timeout(first);
        bus.restart_counts(first);
        assert_eq!(bus.usage(first).total().transfers.total(), 0);
        bus.submit(first, transfer(1, Operation::DmaWrite, 700, 1));
        let end = run(bus.as_mut()).last().unwrap().at + Span::from_us(10);
        let usage = bus.usage(end);
        assert_eq!(usage.elapsed, end - first);
        assert_eq!(usage.total().bytes.content, 700);
        assert_eq!(usage.total().transfers.crossings(), 1);
        assert!(usage.utilisation() <= 1.0);
        let shares = usage.shares();
        assert!((0.0..=1.0).contains(&shares.total()));
    }
}

#[test]
#[should_panic(expected = "no such device")]
fn an_unknown_device_is_refused() {
    let mut bus = InterconnectConfig::Pci(PciConfig::default())
        .build(1)
        .unwrap();
    bus.submit(Time::ZERO, transfer(1, Operation::DmaRead, 4, 0));
}

//! A path that silently drops packets above a size: packets allowed by the peer and the interface do not get through.

use crate::engine::Engine;
use crate::path::{Path, PathSpec};
use crate::world::{Outcome, Role, run_over};
use baton_tcp::{Config, Congestion, MtuProbing, ProbePathMtu};
use baton_wire::{Span, Time};

const PATH: PathSpec = PathSpec {
    rate: 3_000_000,
    delay: Span::from_ms(10),
    queue: 50,
    loss: 0.0,
    mark_above: None,
};

/// Length of one run in seconds. Each tenth of it is long enough for any search.
const SECONDS: u64 = 100;

/// Remaining width of a search when it ends, in bytes.
const THRESHOLD: usize = 8;

fn config(when: ProbePathMtu, congestion: Congestion) -> Config {
    Config {
        congestion,
        mtu_probing: MtuProbing {
            when,
            interval_s: 15,
            ..MtuProbing::default()
        },
        ..Config::default()
    }
}

/// Runs a transfer over a path that has each of these MTUs from the given second on.
fn transfer(config: &Config, mtus: &[(u64, usize)]) -> Outcome {
    let mut forward = Path::new(PATH, 1);
    let limits = mtus.iter();
    forward.limits = limits
        .map(|&(at_s, mtu)| (Time::ZERO + Span::from_secs(at_s), mtu))
        .collect();
    let mut source = Engine::opening(Role::Source, std::slice::from_ref(config));
    let mut sink = Engine::listening(Role::Sink, config, 1);
    let backward = Path::new(PATH, 2);
    let span = Span::from_secs(SECONDS);
    run_over(&mut source, &mut sink, forward, backward, span)
}

/// Asserts that the longest packet in the tenth of the run that ends at `tenth` was as long as the path allows, or nearly.
fn assert_found(outcome: &Outcome, tenth: usize, mtu: usize, name: &str) {
    let longest = outcome.longest[tenth - 1];
    assert!(
        (mtu - THRESHOLD + 1..=mtu).contains(&longest),
        "{name}: {longest} of {mtu} bytes, {:?}",
        outcome.longest
    );
}

/// Returns every combination of recovery rules and controllers, with its name.
fn everyone() -> Vec<(String, Config)> {
    let mut all = Vec::new();
    for when in [ProbePathMtu::AfterBlackHole, ProbePathMtu::Always] {
        for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Bbr] {
            for (sack, rack_tlp) in [(true, true), (true, false), (false, false)] {
                let config = Config {
                    sack,
                    rack_tlp,
                    timestamps: when == ProbePathMtu::Always,
                    ..config(when, congestion)
                };
                let name = format!("{when:?} {congestion:?} {sack} {rack_tlp}");
                all.push((name, config));
            }
        }
    }
    all
}

#[test]
fn probing_finds_the_right_size_also_when_the_path_changes() {
    for (name, config) in everyone() {
        let outcome = transfer(&config, &[(0, 1400), (30, 1280), (60, 1480)]);
        for (tenth, mtu) in [(3, 1400), (6, 1280), (10, 1480)] {
            assert_found(&outcome, tenth, mtu, &name);
        }
        // Once the size is known, the data without headers is more than nine tenths of what the bottleneck can carry.
        let [bytes] = outcome.between(8, 10)[..] else {
            panic!("expected one flow");
        };
        let carried = PATH.rate / 8 * (SECONDS / 5);
        assert!(bytes > carried * 9 / 10, "{name}: {bytes} of {carried}");
    }
}

#[test]
fn without_probing_a_black_hole_stops_the_transfer() {
    let config = config(ProbePathMtu::Off, Congestion::Cubic);
    let outcome = transfer(&config, &[(0, 1400)]);
    assert_eq!(outcome.received, [0]);
}

/// Probes cost little on a path without an MTU limit: a lost probe does not reduce the window, and all probes together cost less than 1 % of
/// the throughput.
#[test]
fn probes_cost_little_throughput() {
    for (name, config) in everyone() {
        let off = Config {
            mtu_probing: MtuProbing::default(),
            ..config.clone()
        };
        let [with, without] = [&config, &off].map(|config| transfer(config, &[]).between(2, 10)[0]);
        assert!(with > without * 99 / 100, "{name}: {with} and {without}");
    }
}

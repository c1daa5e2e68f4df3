//! Compares congestion controllers by goodput, standing queue, losses and fairness, and tests what is special about BBR and DCTCP.

use crate::engine::Engine;
use crate::fairness::fairness;
use crate::path::PathSpec;
use crate::world::{Outcome, Role, run};
use baton_tcp::{Config, Congestion, EcnMode};
use baton_wire::{Span, Time};
use std::fmt::Write;

/// Rate of the bottleneck in bits per second.
const RATE: u64 = 20_000_000;
/// Share of the rate that is payload.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
const SECONDS: u64 = 30;
const ALL: [Congestion; 4] = [
    Congestion::NewReno,
    Congestion::Cubic,
    Congestion::Dctcp,
    Congestion::Bbr,
];

fn config(congestion: Congestion) -> Config {
    Config {
        congestion,
        send_buffer: 4 << 20,
        receive_buffer: 4 << 20,
        ..Config::default()
    }
}

fn path(round_trip_ms: u64, queue: usize) -> PathSpec {
    PathSpec {
        rate: RATE,
        delay: Span::from_us(round_trip_ms * 500),
        queue,
        loss: 0.0,
        mark_above: None,
    }
}

/// Returns how many packets the path holds while none waits at the bottleneck.
fn path_holds(round_trip_ms: u64) -> usize {
    (RATE * round_trip_ms / 1000 / 8 / 1500) as usize
}

fn compete(configs: &[Config], path: PathSpec) -> Outcome {
    let mut source = Engine::opening(Role::Source, configs);
    let mut sink = Engine::listening(Role::Sink, &configs[0], configs.len());
    run(&mut source, &mut sink, path, Span::from_secs(SECONDS))
}

/// Returns the share of the path's capacity that the applications used in `seconds`.
fn used(bytes: u64, seconds: u64) -> f64 {
    bytes as f64 * 8.0 / seconds as f64 / (RATE as f64 * PAYLOAD_SHARE)
}

fn line(text: &mut String, start: std::fmt::Arguments<'_>, used: f64, outcome: &Outcome) {
    write!(
        text,
        "\n{start}  {:>6.1}  {:>6.1}  {:>5}",
        used * 100.0,
        outcome.mean_queue(),
        outcome.lost
    )
    .expect("a string can be written");
}

/// Queues that hold a quarter of what the path holds, as much, or eight times as much. Without marks, DCTCP behaves like NewReno.
#[test]
fn one_flow_by_round_trip_and_queue() {
    let mut text = String::from("algorithm  rtt ms  queue  used %  queued   lost");
    for congestion in ALL {
        for round_trip_ms in [2, 20, 100] {
            let holds = path_holds(round_trip_ms).max(8);
            for queue in [holds / 4, holds, holds * 8] {
                let outcome = compete(&[config(congestion)], path(round_trip_ms, queue));
                let used = used(outcome.received[0], SECONDS);
                let least = if congestion == Congestion::Bbr {
                    0.85
                } else {
                    0.3
                };
                assert!(
                    used > least,
                    "{congestion:?}, {round_trip_ms} ms, {queue}: {used:.3}"
                );
                let name = format!("{congestion:?}");
                line(
                    &mut text,
                    format_args!("{name:<9}  {round_trip_ms:>6}  {queue:>5}"),
                    used,
                    &outcome,
                );
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// A deep queue that CUBIC fills stays nearly empty with BBR (draft-ietf-ccwg-bbr-06 1).
#[test]
fn bbr_leaves_a_deep_queue_empty() {
    let queue = path_holds(20) * 8;
    let queued = |congestion| compete(&[config(congestion)], path(20, queue)).mean_queue();
    let (cubic, bbr) = (queued(Congestion::Cubic), queued(Congestion::Bbr));
    assert!(
        cubic > queue as f64 / 2.0,
        "CUBIC fills the queue: {cubic:.1} of {queue}"
    );
    assert!(bbr < cubic / 10.0, "BBR does not: {bbr:.1} of {queue}");
}

/// Losses that are not caused by congestion.
#[test]
fn random_losses() {
    let mut text = String::from("algorithm  rtt ms  loss %  used %  queued   lost");
    for round_trip_ms in [20, 100] {
        for loss in [0.01, 0.02] {
            let mut shares = Vec::new();
            for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Bbr] {
                let path = PathSpec {
                    loss,
                    ..path(round_trip_ms, path_holds(round_trip_ms))
                };
                let outcome = compete(&[config(congestion)], path);
                let used = used(outcome.received[0], SECONDS);
                shares.push(used);
                let name = format!("{congestion:?}");
                line(
                    &mut text,
                    format_args!("{name:<9}  {round_trip_ms:>6}  {:>6.1}", loss * 100.0),
                    used,
                    &outcome,
                );
            }
            let [_, cubic, bbr] = shares[..] else {
                panic!("three algorithms were run")
            };
            assert!(
                bbr > 2.0 * cubic,
                "BBR {bbr:.3}, CUBIC {cubic:.3} at {loss}"
            );
            assert!(loss > 0.01 || bbr > 0.8, "{bbr:.3} at {loss}");
        }
    }
    insta::assert_snapshot!(text);
}

/// The queue stays near its marking threshold, however many packets it can hold (RFC 8257 3).
#[test]
fn dctcp_keeps_the_queue_near_the_threshold() {
    let mut text = String::from("threshold  flows  used %  queued  marked %   lost");
    for threshold in [10, 20, 40] {
        for flows in [1, 2, 8] {
            let path = PathSpec {
                mark_above: Some(threshold),
                ..path(4, 500)
            };
            let outcome = compete(&vec![config(Congestion::Dctcp); flows], path);
            let received: u64 = outcome.received.iter().sum();
            let (used, queued) = (used(received, SECONDS), outcome.mean_queue());
            let marked = outcome.marked as f64 * 1448.0 / received as f64;
            assert!(used > 0.9, "{threshold}, {flows}: {used:.3}");
            let near = 0.3 * threshold as f64..2.5 * threshold as f64;
            assert!(near.contains(&queued), "{threshold}, {flows}: {queued:.1}");
            assert!(fairness(&outcome.received) > 0.8);
            write!(
                text,
                "\n{threshold:>9}  {flows:>5}  {:>6.1}  {queued:>6.1}  {:>8.1}  {:>5}",
                used * 100.0,
                marked * 100.0,
                outcome.lost
            )
            .expect("a string can be written");
        }
    }
    insta::assert_snapshot!(text);
}

/// On the same path, NewReno with classic ECN halves its window at each mark, which empties the queue.
#[test]
fn dctcp_uses_more_of_a_path_with_early_marks_than_newreno() {
    let path = PathSpec {
        mark_above: Some(5),
        ..path(20, 500)
    };
    let reno = Config {
        ecn: EcnMode::Request,
        ..config(Congestion::NewReno)
    };
    let used_by = |config: Config| used(compete(&[config], path).received[0], SECONDS);
    let (reno, dctcp) = (used_by(reno), used_by(config(Congestion::Dctcp)));
    assert!(dctcp > reno + 0.05, "DCTCP {dctcp:.3}, NewReno {reno:.3}");
}

#[test]
fn flows_of_one_kind_are_fair() {
    let mut text = String::from("algorithm  flows  used %  queued   lost  fairness");
    for congestion in [Congestion::Dctcp, Congestion::Bbr] {
        for flows in [2, 4, 8] {
            let mark_above = (congestion == Congestion::Dctcp).then_some(20);
            let path = PathSpec {
                mark_above,
                ..path(20, 66)
            };
            let outcome = compete(&vec![config(congestion); flows], path);
            let late = outcome.between(3, 9);
            let used = used(late.iter().sum(), SECONDS * 6 / 10);
            let fair = fairness(&late);
            assert!(used > 0.85, "{congestion:?} x {flows}: {used:.3}");
            assert!(fair > 0.8, "{congestion:?} x {flows}: {fair:.3}");
            let name = format!("{congestion:?}");
            line(
                &mut text,
                format_args!("{name:<9}  {flows:>5}"),
                used,
                &outcome,
            );
            write!(text, "  {fair:>8.3}").expect("a string can be written");
        }
    }
    insta::assert_snapshot!(text);
}

/// A flow that starts while another has the path to itself gets its share.
#[test]
fn a_late_joiner_gets_its_share() {
    let mut text = String::from("algorithm  share of the second flow, by tenths of the run");
    for congestion in [Congestion::Cubic, Congestion::Dctcp, Congestion::Bbr] {
        let mark_above = (congestion == Congestion::Dctcp).then_some(20);
        let path = PathSpec {
            mark_above,
            ..path(20, 66)
        };
        let config = config(congestion);
        let joins = Time::ZERO + Span::from_secs(SECONDS / 5);
        let mut source =
            Engine::opening(Role::Source, std::slice::from_ref(&config)).joins_at(joins, &config);
        let mut sink = Engine::listening(Role::Sink, &config, 2);
        let outcome = run(&mut source, &mut sink, path, Span::from_secs(SECONDS));
        write!(text, "\n{:<9}", format!("{congestion:?}")).expect("a string can be written");
        for tenth in 0..9 {
            let got = outcome.between(tenth, tenth + 1);
            let share = got[1] as f64 / (got[0] + got[1]) as f64;
            write!(text, "  {share:.2}").expect("a string can be written");
        }
        let late = outcome.between(6, 9);
        let share = late[1] as f64 / (late[0] + late[1]) as f64;
        assert!((0.25..0.75).contains(&share), "{congestion:?}: {share:.2}");
    }
    insta::assert_snapshot!(text);
}

/// The snapshot has the actual shares, which depend on the queue, and not desired ones.
#[test]
fn bbr_beside_cubic() {
    let mut text = String::from("queue  BBR's share  used %  queued   lost");
    let holds = path_holds(20);
    for queue in [holds / 2, holds, holds * 2, holds * 4, holds * 8] {
        let configs = [Congestion::Bbr, Congestion::Cubic].map(config);
        let outcome = compete(&configs, path(20, queue));
        let late = outcome.between(3, 9);
        let share = late[0] as f64 / late.iter().sum::<u64>() as f64;
        assert!((0.05..0.95).contains(&share), "{queue}: {share:.2}");
        let used = used(late.iter().sum(), SECONDS * 6 / 10);
        line(
            &mut text,
            format_args!("{queue:>5}  {share:>11.2}"),
            used,
            &outcome,
        );
    }
    insta::assert_snapshot!(text);
}

/// Moves connections in every state of the controllers, including pacing and samples.
#[test]
fn moves_are_invisible_in_long_transfers() {
    for congestion in ALL {
        let mark_above = (congestion == Congestion::Dctcp).then_some(20);
        let path = PathSpec {
            mark_above,
            loss: 0.0005,
            ..path(20, 66)
        };
        let config = config(congestion);
        let outcome = |move_every| {
            let mut source = Engine::opening(Role::Source, &[config.clone(), config.clone()])
                .moving_every(move_every);
            let mut sink = Engine::listening(Role::Sink, &config, 2);
            let outcome = run(&mut source, &mut sink, path, Span::from_secs(15));
            (outcome.progress, outcome.lost, outcome.marked)
        };
        assert_eq!(outcome(0), outcome(97), "{congestion:?}");
    }
}

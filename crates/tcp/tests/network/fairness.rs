//! Many flows through one bottleneck.

use crate::engine::Engine;
use crate::path::PathSpec;
use crate::world::{Role, run};
use baton_tcp::{Config, Congestion, EcnMode};
use baton_wire::Span;
use std::fmt::Write;

/// Rate of the bottleneck, in bits per second.
const RATE: u64 = 50_000_000;
const SECONDS: u64 = 30;
/// Number of packets that may wait: as many as the path holds.
const QUEUE: usize = 166;

fn path(mark_above: Option<usize>) -> PathSpec {
    PathSpec {
        rate: RATE,
        delay: Span::from_ms(20),
        queue: QUEUE,
        loss: 0.0,
        mark_above,
    }
}

fn config(congestion: Congestion, ecn: EcnMode) -> Config {
    Config {
        congestion,
        ecn,
        send_buffer: 1 << 20,
        receive_buffer: 1 << 20,
        ..Config::default()
    }
}

/// Returns Jain's index: 1 when all shares are equal, 1/n when one flow has everything.
pub fn fairness(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}

fn compete(configs: &[Config], mark_above: Option<usize>) -> (Vec<u64>, u64, u64) {
    let mut source = Engine::opening(Role::Source, configs);
    let mut sink = Engine::listening(Role::Sink, &configs[0], configs.len());
    let outcome = run(
        &mut source,
        &mut sink,
        path(mark_above),
        Span::from_secs(SECONDS),
    );
    (outcome.received, outcome.lost, outcome.marked)
}

fn share_of_path(received: &[u64]) -> f64 {
    received.iter().sum::<u64>() as f64 * 8.0 / SECONDS as f64 / RATE as f64
}

#[test]
fn flows_of_one_kind_share_a_bottleneck() {
    let mut text = String::from("algorithm  ecn      flows  used %  fairness  lost  marked");
    for congestion in [Congestion::NewReno, Congestion::Cubic] {
        for (ecn, mark_above) in [(EcnMode::Off, None), (EcnMode::Request, Some(QUEUE / 3))] {
            for flows in [2, 8, 32] {
                let configs = vec![config(congestion, ecn); flows];
                let (received, lost, marked) = compete(&configs, mark_above);
                let (used, fair) = (share_of_path(&received), fairness(&received));
                assert!(
                    used > 0.8 && used < 1.0,
                    "{congestion:?} x {flows} uses {used:.3}"
                );
                assert!(
                    fair > 0.8,
                    "{congestion:?} x {flows} has a fairness of {fair:.3}"
                );
                write!(
                    text,
                    "\n{:<9}  {:<7}  {flows:>5}  {:>6.1}  {fair:>8.3}  {lost:>4}  {marked:>6}",
                    format!("{congestion:?}"),
                    format!("{ecn:?}"),
                    used * 100.0
                )
                .expect("a string can be written");
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_flow_of_each_kind_starves_neither() {
    let configs = [Congestion::NewReno, Congestion::Cubic].map(|kind| config(kind, EcnMode::Off));
    let (received, _, _) = compete(&configs, None);
    let shares: Vec<f64> = received
        .iter()
        .map(|&bytes| bytes as f64 / received.iter().sum::<u64>() as f64)
        .collect();
    assert!(
        shares.iter().all(|&share| share > 0.2),
        "NewReno and CUBIC get {shares:.2?}"
    );
    insta::assert_snapshot!(format!("NewReno {:.2}, CUBIC {:.2}", shares[0], shares[1]));
}

//! Goodput over loss, round-trip time, buffer and congestion control.

use crate::engine::Engine;
use crate::other_stack::OtherStack;
use crate::path::PathSpec;
use crate::world::{Host, Role, run};
use baton_tcp::{Config, Congestion};
use baton_wire::Span;
use std::fmt::Write;

/// Rate of the bottleneck, in bits per second.
const RATE: u64 = 20_000_000;
/// Length of one run in seconds.
const SECONDS: u64 = 20;
const LOSSES: [f64; 4] = [0.0, 0.001, 0.01, 0.03];
const ROUND_TRIPS_MS: [u64; 3] = [2, 20, 100];
const BUFFERS_KIB: [u32; 2] = [64, 1024];
const ALGORITHMS: [Congestion; 2] = [Congestion::NewReno, Congestion::Cubic];
/// Maximum number of packets that wait at the bottleneck, which sends them in about 50 ms.
const QUEUE: usize = 83;

/// Implementations at the two ends, source first.
#[derive(Clone, Copy)]
enum Pair {
    Engines,
    EngineToOther,
    OtherToEngine,
}

impl Pair {
    /// Returns the source's algorithms; smoltcp uses only CUBIC.
    fn algorithms(self) -> &'static [Congestion] {
        match self {
            Self::Engines | Self::EngineToOther => &ALGORITHMS,
            Self::OtherToEngine => &[Congestion::Cubic],
        }
    }
}

/// Conditions of one run.
#[derive(Clone, Copy)]
struct Cell {
    loss: f64,
    round_trip_ms: u64,
    buffer_kib: u32,
    congestion: Congestion,
}

impl Cell {
    fn path(self) -> PathSpec {
        PathSpec {
            rate: RATE,
            delay: Span::from_us(self.round_trip_ms * 500),
            queue: QUEUE,
            loss: self.loss,
            mark_above: None,
        }
    }

    fn config(self) -> Config {
        Config {
            send_buffer: self.buffer_kib * 1024,
            receive_buffer: self.buffer_kib * 1024,
            congestion: self.congestion,
            ..Config::default()
        }
    }

    /// Returns the bits per second that the sink's application received.
    fn goodput(self, pair: Pair) -> f64 {
        let (config, buffer) = (self.config(), self.buffer_kib * 1024);
        let configs = [config.clone()];
        let (mut source, mut sink): (Box<dyn Host>, Box<dyn Host>) = match pair {
            Pair::Engines => (
                Box::new(Engine::opening(Role::Source, &configs)),
                Box::new(Engine::listening(Role::Sink, &config, 1)),
            ),
            Pair::EngineToOther => (
                Box::new(Engine::opening(Role::Source, &configs)),
                Box::new(OtherStack::listening(Role::Sink, buffer)),
            ),
            Pair::OtherToEngine => (
                Box::new(OtherStack::opening(Role::Source, buffer)),
                Box::new(Engine::listening(Role::Sink, &config, 1)),
            ),
        };
        let outcome = run(
            source.as_mut(),
            sink.as_mut(),
            self.path(),
            Span::from_secs(SECONDS),
        );
        outcome.received[0] as f64 * 8.0 / SECONDS as f64
    }

    /// Returns the bits per second that window and bottleneck allow.
    fn limit(self) -> f64 {
        let window = f64::from(self.buffer_kib) * 1024.0 * 8.0;
        let payload_share = 1448.0 / 1500.0;
        let by_window = window / (self.round_trip_ms as f64 / 1e3);
        by_window.min(RATE as f64 * payload_share)
    }
}

/// Returns a table of goodputs in Mb/s, with a line for each loss, round-trip time and buffer, and a column for each algorithm.
fn table(pair: Pair) -> String {
    let mut text = String::from("loss %  rtt ms  buffer KiB");
    for congestion in pair.algorithms() {
        write!(text, "  {congestion:>8?}").expect("a string can be written");
    }
    for loss in LOSSES {
        for round_trip_ms in ROUND_TRIPS_MS {
            for buffer_kib in BUFFERS_KIB {
                write!(
                    text,
                    "\n{:>6.1}  {round_trip_ms:>6}  {buffer_kib:>10}",
                    loss * 100.0
                )
                .expect("a string can be written");
                for &congestion in pair.algorithms() {
                    let cell = Cell {
                        loss,
                        round_trip_ms,
                        buffer_kib,
                        congestion,
                    };
                    let goodput = cell.goodput(pair);
                    assert!(
                        goodput <= RATE as f64,
                        "the goodput is at most the bottleneck's rate"
                    );
                    assert!(goodput > 0.0, "some data arrives");
                    write!(text, "  {:>8.2}", goodput / 1e6).expect("a string can be written");
                }
            }
        }
    }
    text
}

#[test]
fn engine_to_engine() {
    insta::assert_snapshot!(table(Pair::Engines));
}

#[test]
fn engine_to_smoltcp() {
    insta::assert_snapshot!(table(Pair::EngineToOther));
}

#[test]
fn smoltcp_to_engine() {
    insta::assert_snapshot!(table(Pair::OtherToEngine));
}

#[test]
fn without_loss_the_path_or_the_window_is_used_up() {
    for congestion in ALGORITHMS {
        for round_trip_ms in ROUND_TRIPS_MS {
            for buffer_kib in BUFFERS_KIB {
                let cell = Cell {
                    loss: 0.0,
                    round_trip_ms,
                    buffer_kib,
                    congestion,
                };
                let (goodput, limit) = (cell.goodput(Pair::Engines), cell.limit());
                assert!(
                    goodput >= 0.85 * limit,
                    "{congestion:?}, {round_trip_ms} ms, {buffer_kib} KiB: {:.2} of {:.2} Mb/s",
                    goodput / 1e6,
                    limit / 1e6
                );
            }
        }
    }
}

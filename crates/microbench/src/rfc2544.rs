//! The benchmarks of RFC 2544, for users who expect them: throughput, latency and back-to-back frames.

use crate::measure::{Algorithm, Measurement, Settings, measure};
use crate::port::{Latency, Load, Port, Request};
use crate::search::Goal;
use crate::test::Test;
use baton_wire::Span;
use serde::Serialize;

/// Longest burst that is tried, in seconds at line rate (RFC 2544, 26.4: at least 2).
const LONGEST_BURST_S: f64 = 2.0;

/// Results of the benchmarks of RFC 2544 for a test with datagrams.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rfc2544 {
    /// Highest rate without loss, in frames per second each way (26.1); `None` if there is none.
    pub throughput: Option<f64>,
    /// Latency at that rate (26.2).
    pub latency: Option<Latency>,
    /// Length in frames of the longest burst at line rate without loss (26.4).
    pub back_to_back: u64,
    /// Number of trials made.
    pub trials: u32,
}

/// Runs the benchmarks of RFC 2544 with binary searches, as is usual.
///
/// # Panics
/// When the test has no datagrams.
///
/// # Errors
/// Those of the trials.
pub fn rfc2544<P: Port>(
    port: &mut P,
    test: Test,
    settings: &Settings,
) -> Result<Rfc2544, P::Error> {
    assert!(
        test.sends_datagrams() || test.receives_datagrams(),
        "RFC 2544 applies only to tests that count frames"
    );
    let settings = Settings {
        goals: vec![Goal::deterministic(0.0)],
        algorithm: Algorithm::Bisection,
        ..settings.clone()
    };
    let Measurement { goals, trials, .. } = measure(port, test, &settings)?;
    let throughput = goals.first().and_then(|result| result.lower);
    // The search has made a trial at this rate.
    let at_throughput =
        throughput.and_then(|rate| trials.iter().find(|one| one.load == Load::Rate(rate)));
    let latency = at_throughput.and_then(|trial| trial.latency);
    let fastest = trials.iter().map(|trial| {
        let frames = trial.sent.sent.max(trial.received.sent);
        frames as f64 / trial.seconds
    });
    let line_rate = test.line_rate(port.link_rate());
    let fastest = fastest.fold(0.0, f64::max);
    // With a sender far slower than line rate, two seconds' worth of frames would take minutes.
    let burst_rate = match fastest < line_rate / 2.0 {
        true => fastest,
        false => line_rate,
    };
    let (back_to_back, bursts) = longest_burst(port, test, burst_rate)?;
    Ok(Rfc2544 {
        throughput,
        latency,
        back_to_back,
        trials: trials.len() as u32 + bursts,
    })
}

/// Returns the exact length of the longest burst without loss, and the number of trials needed.
fn longest_burst<P: Port>(
    port: &mut P,
    test: Test,
    line_rate: f64,
) -> Result<(u64, u32), P::Error> {
    let mut trials = 0;
    let mut is_lossless = |frames: u64| {
        trials += 1;
        let seconds = frames as f64 / line_rate;
        let request = Request {
            test,
            load: Load::Burst(frames),
            warm_up: Span::ZERO,
            duration: Span::from_ps((seconds * 1e12) as u64),
        };
        Ok(port.trial(&request)?.loss_ratio() == 0.0)
    };
    let most = (LONGEST_BURST_S * line_rate) as u64;
    // Begins with short bursts: a burst that overflows a buffer is usually short.
    let (mut good, mut bad) = (0, 1);
    while bad < most && is_lossless(bad)? {
        (good, bad) = (bad, 4 * bad);
    }
    if bad >= most {
        if is_lossless(most)? {
            return Ok((most, trials));
        }
        bad = most;
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if is_lossless(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok((good, trials))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::LinkRate;
    use crate::port::{Losses, Place, Stream, Trial};
    use std::convert::Infallible;

    /// A receiver that processes `rate` frames per second and buffers `holds` frames. Each frame takes 5 us plus the time it waits.
    struct Receiver {
        rate: f64,
        holds: u64,
    }

    impl Port for Receiver {
        type Error = Infallible;

        fn link_rate(&self) -> LinkRate {
            LinkRate::GIGABIT
        }

        fn trial(&mut self, request: &Request) -> Result<Trial, Infallible> {
            let seconds = request.duration.as_secs_f64();
            let (offered, delivered) = match request.load {
                Load::Burst(frames) => {
                    let gone = (frames as f64 / request.test.line_rate(self.link_rate())
                        * self.rate) as u64;
                    (frames, frames.min(self.holds + gone))
                }
                Load::Rate(rate) => (
                    (rate * seconds) as u64,
                    (rate.min(self.rate) * seconds) as u64,
                ),
                Load::Connections(_) => (0, 0),
            };
            let mut losses = Losses::default();
            losses.add(Place::ReceiveFifo, offered - delivered);
            Ok(Trial {
                test: request.test,
                load: request.load,
                seconds,
                sent: Stream::default(),
                received: Stream {
                    offered,
                    sent: offered,
                    delivered,
                    losses,
                },
                goodput_bytes: 0,
                connections: 0,
                latency: Some(Latency {
                    least_us: 5.0,
                    mean_us: 6.0,
                    most_us: 9.0,
                }),
                interrupts: 0,
                uses: Vec::new(),
                tolerance: 0,
            })
        }
    }

    #[test]
    fn throughput_latency_and_bursts_are_found() {
        let mut port = Receiver {
            rate: 500_000.0,
            holds: 1_000,
        };
        let test = Test::UdpReceive18;
        let Ok(found) = rfc2544(&mut port, test, &Settings::simulated());
        let throughput = found.throughput.expect("a rate");
        assert!(
            (0.995 * port.rate..=port.rate).contains(&throughput),
            "{throughput}"
        );
        assert_eq!(found.latency.map(|latency| latency.mean_us), Some(6.0));
        // Frames of a burst are lost if it is longer than the buffer plus the frames processed meanwhile.
        let exact = (1.0 - port.rate / test.line_rate(LinkRate::GIGABIT)).recip() * 1_000.0;
        assert!(
            (found.back_to_back as f64 - exact).abs() <= 2.0,
            "{found:?} and {exact}"
        );
        assert!(found.trials < 40, "{found:?}");
    }

    #[test]
    fn without_losses_the_longest_burst_is_found() {
        let mut port = Receiver {
            rate: 2e6,
            holds: 10,
        };
        let Ok(found) = rfc2544(&mut port, Test::UdpReceive18, &Settings::simulated());
        assert_eq!(found.back_to_back, 2_976_190);
        assert_eq!(
            found.throughput,
            Some(Test::UdpReceive18.line_rate(LinkRate::GIGABIT))
        );
    }
}

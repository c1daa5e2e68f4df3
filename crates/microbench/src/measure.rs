//! One test, searched.

use crate::frame::LinkRate;
use crate::port::{Load, Port, Request, Trial};
use crate::search::{Found, Goal, GoalResult, Measured, Range, bisection, multiple};
use crate::test::{Test, Unit};
use baton_wire::Span;
use serde::Serialize;

/// How rates are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// All goals in one search ([`multiple`]).
    Multiple,
    /// Binary search, once for each goal ([`bisection`]).
    Bisection,
}

/// How to search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Shares of frames that may be lost.
    pub goals: Vec<Goal>,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Bounds are no further apart than this share of the upper one at the end.
    pub width: f64,
    /// How long trials are.
    pub trials: TrialLength,
    /// Numbers of TCP connections that are tried.
    pub connections: Vec<u32>,
}

/// How long trials are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialLength {
    /// Always the same.
    Fixed {
        /// Before anything is counted.
        warm_up: Span,
        /// What is counted.
        duration: Span,
    },
    /// As long as so many frames take, within limits: enough to tell loads apart, and no more.
    Frames {
        /// Frames at the rate of the trial.
        frames: u32,
        /// The shortest time that is counted.
        least: Span,
        /// The longest.
        most: Span,
    },
}

impl Settings {
    /// For simulated NICs on a link, which do the same in each trial. What happens on a faster link happens sooner.
    pub fn simulated_on(link: LinkRate) -> Self {
        let mut settings = Self::simulated();
        if link > LinkRate::GIGABIT {
            settings.trials = TrialLength::Frames {
                frames: 100_000,
                least: Span::from_us(500),
                most: Span::from_ms(20),
            };
        }
        settings
    }

    /// For those of the report.
    pub fn simulated() -> Self {
        Self {
            goals: vec![Goal::deterministic(0.0), Goal::deterministic(0.005)],
            algorithm: Algorithm::Multiple,
            width: 0.005,
            trials: TrialLength::Frames {
                frames: 16_000,
                least: Span::from_ms(20),
                most: Span::from_ms(160),
            },
            connections: vec![1, 2, 4, 8, 16, 32, 64, 128],
        }
    }

    /// For interfaces, of which no two trials are alike: so many at each load, of which half may lose more.
    pub fn live(trials: u32, warm_up: Span, duration: Span) -> Self {
        let goal = |loss_ratio| Goal {
            trials,
            ..Goal::live(loss_ratio)
        };
        Self {
            goals: vec![goal(0.0), goal(0.005)],
            trials: TrialLength::Fixed { warm_up, duration },
            ..Self::simulated()
        }
    }
}

impl TrialLength {
    /// As long as `frames` take, between the 5 ms that coalesced interrupts need and 160 ms.
    pub fn of_frames(frames: u64) -> Self {
        Self::Frames {
            frames: u32::try_from(frames).unwrap_or(u32::MAX).max(1),
            least: Span::from_ms(5),
            most: Span::from_ms(160),
        }
    }

    /// Warm-up and duration of a trial at `rate` frames a second.
    pub(crate) fn of(&self, rate: f64) -> (Span, Span) {
        match *self {
            Self::Fixed { warm_up, duration } => (warm_up, duration),
            Self::Frames {
                frames,
                least,
                most,
            } => {
                let span = Span::from_ps((f64::from(frames) / rate * 1e12) as u64);
                let duration = span.clamp_to(least, most);
                (duration / 4, duration)
            }
        }
    }
}

/// What was found of one test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The test.
    pub test: Test,
    /// The most that any trial counted, in the test's unit: the report's way.
    pub best: f64,
    /// Which trial that was.
    pub best_trial: usize,
    /// The rates for each goal, frames or connections a second; none of tests that vary the number of connections.
    pub goals: Vec<GoalResult>,
    /// All trials, in their order.
    pub trials: Vec<Trial>,
}

impl Measurement {
    /// The trial with the best result.
    pub fn best_trial(&self) -> &Trial {
        &self.trials[self.best_trial]
    }
}

/// What TCP delivers is read by the interrupt, hundreds of microseconds' worth at once: trials are so long that this makes no difference.
const SHORTEST_WITH_TCP: Span = Span::from_ms(50);

/// The same on the fastest links, where connections still have to open and to find their windows.
const SHORTEST: Span = Span::from_ms(2);

/// Searches the best result of a test.
///
/// # Errors
/// Those of trials.
pub fn measure<P: Port>(
    port: &mut P,
    test: Test,
    settings: &Settings,
) -> Result<Measurement, P::Error> {
    let mut trials = Vec::new();
    let link = port.link_rate();
    let line_rate = test.line_rate(link);
    let mut make = |load, rate: f64| {
        let (warm_up, mut duration) = settings.trials.of(rate);
        if test.has_connections() {
            let link = u64::from(link.mbps);
            let gigabit = u64::from(LinkRate::GIGABIT.mbps);
            let shortest = SHORTEST_WITH_TCP * gigabit / link.max(gigabit);
            duration = duration.max(shortest.max(SHORTEST));
        }
        let trial = port.trial(&Request {
            test,
            load,
            warm_up,
            duration,
        })?;
        let measured = Measured {
            loss_ratio: trial.loss_ratio(),
            forwarding_rate: trial.forwarding_rate(),
        };
        trials.push(trial);
        Ok(measured)
    };
    let mut goals = Vec::new();
    if test.has_connections() {
        for connections in &settings.connections {
            make(Load::Connections(*connections), line_rate)?;
        }
    } else {
        let search = match settings.algorithm {
            Algorithm::Multiple => multiple,
            Algorithm::Bisection => bisection,
        };
        let Found { goals: found, .. } = search(
            &range(test, link, settings.width),
            &settings.goals,
            |rate| make(Load::Rate(rate), rate * frames_for_one(test)),
        )?;
        goals = found;
    }
    let best = (0..trials.len()).max_by(|a, b| trials[*a].result().total_cmp(&trials[*b].result()));
    let best_trial = best.unwrap_or(0);
    Ok(Measurement {
        test,
        best: trials[best_trial].result(),
        best_trial,
        goals,
        trials,
    })
}

/// Frames each way for each that is counted.
fn frames_for_one(test: Test) -> f64 {
    match test.unit() {
        Unit::PayloadMbps => 1.0,
        Unit::ConnectionsPerMs => 4.0,
    }
}

/// Rates that are tried: from a thousandth of the link's, or of a gigabit link's if that is less.
fn range(test: Test, link: LinkRate, width: f64) -> Range {
    let most = test.line_rate(link);
    let gigabits = f64::from(link.mbps) / f64::from(LinkRate::GIGABIT.mbps);
    Range {
        least: most / 1e3 / gigabits.max(1.0),
        most,
        width,
    }
}

//! Searches for the best result of one test.

use crate::frame::LinkRate;
use crate::port::{Load, Port, Request, Trial};
use crate::search::{Found, Goal, GoalResult, Measured, Range, bisection, multiple};
use crate::test::{Test, Unit};
use baton_wire::Span;
use serde::Serialize;

/// Search algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// All goals in one search ([`multiple`]).
    Multiple,
    /// Binary search, once for each goal ([`bisection`]).
    Bisection,
}

/// Parameters of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Shares of frames that may be lost.
    pub goals: Vec<Goal>,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The search ends when the bounds differ by at most this share of the upper bound.
    pub width: f64,
    /// Length of the trials.
    pub trials: TrialLength,
    /// Numbers of TCP connections to try.
    pub connections: Vec<u32>,
}

/// Length of the trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialLength {
    /// All trials have the same length.
    Fixed {
        /// Time before counting starts.
        warm_up: Span,
        /// Time during which frames are counted.
        duration: Span,
    },
    /// A trial takes as long as this many frames need, within limits: long enough to distinguish loads, and no longer.
    Frames {
        /// Number of frames at the rate of the trial.
        frames: u32,
        /// Shortest time during which frames are counted.
        least: Span,
        /// Longest time during which frames are counted.
        most: Span,
    },
}

impl Settings {
    /// Returns settings for simulated NICs, which behave the same in each trial, on a link. Trials on a faster link can be shorter.
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

    /// Returns settings for the report's simulated NICs.
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

    /// Returns settings for real interfaces, whose trials vary: each load is tried `trials` times, and half of them may lose more than a goal allows.
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
    /// Returns the length of a trial that takes as long as `frames` need, between 5 ms (needed for coalesced interrupts) and 160 ms.
    pub fn of_frames(frames: u64) -> Self {
        Self::Frames {
            frames: u32::try_from(frames).unwrap_or(u32::MAX).max(1),
            least: Span::from_ms(5),
            most: Span::from_ms(160),
        }
    }

    /// Returns the warm-up and the duration of a trial at `rate` frames per second.
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

/// Result of the search for one test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The test.
    pub test: Test,
    /// Highest result of any trial, in the test's unit, as the report defines it.
    pub best: f64,
    /// Index of the trial with the highest result.
    pub best_trial: usize,
    /// Rates found for each goal, in frames or connections per second. Empty for tests that vary the number of connections.
    pub goals: Vec<GoalResult>,
    /// All trials, in the order in which they were made.
    pub trials: Vec<Trial>,
}

impl Measurement {
    /// Returns the trial with the best result.
    pub fn best_trial(&self) -> &Trial {
        &self.trials[self.best_trial]
    }
}

/// Shortest trial with TCP. The interrupt handler reads hundreds of microseconds' worth of data at once; a trial this long makes that
/// negligible.
const SHORTEST_WITH_TCP: Span = Span::from_ms(50);

/// Shortest trial with TCP on the fastest links, where connections still have to open and to grow their windows.
const SHORTEST: Span = Span::from_ms(2);

/// Searches for the best result of a test.
///
/// # Errors
/// Those of the trials.
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

/// Returns the number of frames in each direction for each counted frame or connection.
fn frames_for_one(test: Test) -> f64 {
    match test.unit() {
        Unit::PayloadMbps => 1.0,
        Unit::ConnectionsPerMs => 4.0,
    }
}

/// Returns the range of rates to try: from a thousandth of the link's rate, or of a gigabit link's if that is less.
fn range(test: Test, link: LinkRate, width: f64) -> Range {
    let most = test.line_rate(link);
    let gigabits = f64::from(link.mbps) / f64::from(LinkRate::GIGABIT.mbps);
    Range {
        least: most / 1e3 / gigabits.max(1.0),
        most,
        width,
    }
}

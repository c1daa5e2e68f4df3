//! A router: the highest rate at which it drops nothing.

use super::{Machines, RouterTraffic};
use crate::measure::TrialLength;
use crate::port::{Losses, Use};
use crate::search::{Goal, Measured, Range, multiple};
use crate::simulated::{SimulationError, route};
use baton_wire::Span;
use serde::Serialize;

/// How the router's drivers hear of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drivers {
    /// By interrupts.
    Interrupt,
    /// They poll, as Click's may.
    Polling,
}

impl Drivers {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Interrupt, Self::Polling];

    /// Their name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupts",
            Self::Polling => "polling",
        }
    }
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterTrial {
    /// Packets a second that were to be sent, both ways together.
    pub rate: f64,
    /// How long was counted, seconds.
    pub seconds: f64,
    /// Packets that were due.
    pub offered: u64,
    /// Packets that reached the client that they were for.
    pub forwarded: u64,
    /// Packets that the router does not forward, by the rules of IP.
    pub refused: u64,
    /// Frames that were lost at or between NICs, and those that a client had no time to send.
    pub losses: Losses,
    /// Packets that came to a full queue of the router.
    pub too_many: u64,
    /// Interrupts of the router.
    pub interrupts: u64,
    /// How busy what of the router was.
    pub uses: Vec<Use>,
}

impl RouterTrial {
    /// More packets than may be under way at one end of the trial and not at the other, without a loss: as many as wait for an interrupt or a
    /// turn of the drivers, both ways.
    const UNDER_WAY: u64 = 128;

    /// The share of the packets that was lost, 0 to 1.
    pub fn loss_ratio(&self) -> f64 {
        let missing = self.offered.saturating_sub(self.forwarded + self.refused);
        let named = self.losses.total() + self.too_many;
        let lost = if missing > Self::UNDER_WAY {
            missing
        } else {
            named.min(self.offered)
        };
        lost as f64 / self.offered.max(1) as f64
    }
}

/// How to search.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterSettings {
    /// Bounds are no further apart than this share of the upper one at the end.
    pub width: f64,
    /// How long trials are.
    pub trials: TrialLength,
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            width: 0.005,
            trials: TrialLength::Frames {
                frames: 24_000,
                least: Span::from_ms(20),
                most: Span::from_ms(160),
            },
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterMeasurement {
    /// The highest rate at which nothing was dropped, thousand packets a second.
    pub kpps: f64,
    /// The same with up to 0.5 % dropped.
    pub kpps_with_loss: f64,
    /// The trial at the highest rate without a drop.
    pub best: Option<RouterTrial>,
    /// Trials that were made.
    pub trials: u32,
}

/// Searches the highest rate of a router.
///
/// # Errors
/// A profile describes what cannot be simulated.
pub fn measure_router(
    machines: &Machines<'_>,
    drivers: Drivers,
    traffic: &RouterTraffic,
    settings: &RouterSettings,
) -> Result<RouterMeasurement, SimulationError> {
    let most = traffic.line_rate(machines.link_rate());
    let range = Range {
        least: most / 1e3,
        most,
        width: settings.width,
    };
    let goals = [Goal::deterministic(0.0), Goal::deterministic(0.005)];
    let mut best: Option<RouterTrial> = None;
    let found = multiple(&range, &goals, |rate| {
        let (warm_up, duration) = settings.trials.of(rate);
        let trial = route(machines, drivers, traffic, rate, [warm_up, duration])?;
        let measured = Measured {
            loss_ratio: trial.loss_ratio(),
            forwarding_rate: trial.forwarded as f64 / trial.seconds,
        };
        let is_better = best.as_ref().is_none_or(|best| best.rate < rate);
        if measured.loss_ratio == 0.0 && is_better {
            best = Some(trial);
        }
        Ok::<_, SimulationError>(measured)
    })?;
    let of_goal = |goal: usize| found.goals[goal].conditional_throughput.unwrap_or(0.0) / 1e3;
    let kpps = of_goal(0);
    Ok(RouterMeasurement {
        kpps,
        kpps_with_loss: of_goal(1),
        best: best.filter(|best| best.rate <= kpps * 1e3 * (1.0 + settings.width)),
        trials: found.trials,
    })
}

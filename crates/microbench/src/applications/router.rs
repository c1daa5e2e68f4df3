//! A router, and the search for the highest rate at which it drops nothing.

use super::{Machines, RouterTraffic};
use crate::measure::TrialLength;
use crate::port::{Losses, Use};
use crate::search::{Goal, Measured, Range, multiple};
use crate::simulated::{SimulationError, route};
use baton_wire::Span;
use serde::Serialize;

baton_named::named! {
    /// How the router's drivers learn of frames.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Drivers {
        /// The NICs interrupt.
        Interrupt => "interrupts",
        /// The drivers poll, as Click's can.
        Polling => "polling",
    }
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterTrial {
    /// Packets per second that were to be sent, in both directions together.
    pub rate: f64,
    /// Length of the counted part, in seconds.
    pub seconds: f64,
    /// Packets that the clients were to send.
    pub offered: u64,
    /// Packets that reached the client they were addressed to.
    pub forwarded: u64,
    /// Packets that the router does not forward according to the rules of IP.
    pub refused: u64,
    /// Frames that were lost at or between NICs, and frames that a client had no time to send.
    pub losses: Losses,
    /// Packets that the router dropped because a queue was full.
    pub too_many: u64,
    /// Interrupts at the router.
    pub interrupts: u64,
    /// How busy each resource of the router was.
    pub uses: Vec<Use>,
}

impl RouterTrial {
    /// Maximum number of missing packets, in both directions, that do not count as lost, because more packets may wait for interrupts or
    /// for a driver's turn at the end of the trial than at its start.
    const UNDER_WAY: u64 = 128;

    /// Returns the share of the packets that were lost, 0 to 1.
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

/// Parameters of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterSettings {
    /// The search ends when the bounds differ by at most this share of the upper bound.
    pub width: f64,
    /// Length of the trials.
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

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterMeasurement {
    /// Highest rate at which nothing was dropped, in thousand packets per second.
    pub kpps: f64,
    /// Highest rate at which up to 0.5 % was dropped, in thousand packets per second.
    pub kpps_with_loss: f64,
    /// The trial at the highest rate without a dropped packet.
    pub best: Option<RouterTrial>,
    /// Number of trials made.
    pub trials: u32,
}

/// Searches for the highest rate of a router.
///
/// # Errors
/// A profile describes something that cannot be simulated.
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

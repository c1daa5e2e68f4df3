//! Load control: the state machine that keeps Qlen between Lowat and Hiwat (handoff-policies 3.2, figure 3).

mod gauge;

pub use gauge::Load;

use crate::config::LoadControl;
use gauge::{Gauge, Level};
use std::fmt::Debug;

/// State of load control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadState {
    /// Watches Qlen.
    Monitor,
    /// Soft_Limit was lowered. Waits until Cnum is below it.
    Decrease,
    /// Soft_Limit was raised. Waits until Cnum reaches it or Qlen exceeds Hiwat.
    Increase,
}

/// Load control: determines Soft_Limit, the maximum number of connections on the NIC. [`Watermarks`] is the algorithm of the paper.
pub trait Governor: Debug + Send {
    /// Updates the state from the load and from Cnum, the number of connections on the NIC. The adapter calls this only when a packet has
    /// arrived, or a connection was handed off or has left.
    fn run(&mut self, load: &Load, cnum: u32);

    /// Returns Soft_Limit. Values above Hard_Limit count as Hard_Limit.
    fn soft_limit(&self) -> u32;

    /// Returns the state. In [`LoadState::Decrease`] the adapter may ask surplus connections to leave.
    fn state(&self) -> LoadState {
        LoadState::Monitor
    }

    /// Returns the number of connections that must leave before the DECREASE state ends.
    fn surplus(&self, cnum: u32) -> u32 {
        match self.state() {
            LoadState::Decrease => (cnum + 1).saturating_sub(self.soft_limit()),
            LoadState::Monitor | LoadState::Increase => 0,
        }
    }

    /// Asserts the invariants of the governor.
    fn check(&self) {}
}

/// The state machine of the paper (figure 3): Soft_Limit falls when Qlen exceeds Hiwat, and rises when Qlen is below Lowat. The configured
/// [measure](crate::LoadMeasure) may take the place of Qlen.
#[derive(Clone, Debug)]
pub struct Watermarks {
    config: LoadControl,
    gauge: Gauge,
    hard_limit: u32,
    soft_limit: u32,
    state: LoadState,
}

impl Watermarks {
    /// Creates a governor whose Soft_Limit starts at `hard_limit` and never exceeds it.
    pub fn new(config: LoadControl, hard_limit: u32) -> Self {
        Self {
            gauge: Gauge::new(&config),
            config,
            hard_limit,
            soft_limit: hard_limit,
            state: LoadState::Monitor,
        }
    }

    /// Lowers Soft_Limit below Cnum, but not below one: with a limit of zero, Cnum could never be below it.
    fn lower(&mut self, cnum: u32) {
        self.state = LoadState::Decrease;
        let lowered = cnum
            .saturating_sub(share(cnum, self.config.decrease_percent))
            .max(1);
        self.soft_limit = self.soft_limit.min(lowered);
    }

    /// Raises Soft_Limit up to Hard_Limit. If it is already there, the state stays MONITOR.
    fn raise(&mut self) {
        if self.soft_limit < self.hard_limit {
            let step = share(self.hard_limit, self.config.increase_percent);
            self.soft_limit = self.soft_limit.saturating_add(step).min(self.hard_limit);
            self.state = LoadState::Increase;
        }
    }
}

impl Governor for Watermarks {
    /// Makes at most one transition per call.
    fn run(&mut self, load: &Load, cnum: u32) {
        if !self.config.enabled {
            return;
        }
        let level = self.gauge.level(load);
        match (self.state, level) {
            (LoadState::Monitor | LoadState::Increase, Level::Over) => self.lower(cnum),
            (LoadState::Monitor, Level::Under) => self.raise(),
            (LoadState::Decrease, _) if cnum < self.soft_limit => {
                // Earlier measurements included the connections that have left.
                self.gauge.restart(load);
                self.state = LoadState::Monitor;
            }
            (LoadState::Increase, _) if cnum >= self.soft_limit => {
                self.state = LoadState::Monitor;
            }
            _ => {}
        }
    }

    fn soft_limit(&self) -> u32 {
        self.soft_limit
    }

    fn state(&self) -> LoadState {
        self.state
    }

    fn check(&self) {
        assert!(
            self.soft_limit <= self.hard_limit,
            "Soft_Limit is at most Hard_Limit"
        );
        assert!(
            self.soft_limit > 0 || self.hard_limit == 0,
            "Soft_Limit leaves room for a connection"
        );
    }
}

/// Returns `percent` per cent of `n`, but at least one.
fn share(n: u32, percent: u32) -> u32 {
    u32::try_from(u64::from(n) * u64::from(percent) / 100)
        .unwrap_or(u32::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::LoadState::{Decrease, Increase, Monitor};
    use super::*;

    const HIWAT: u32 = 100;
    const LOWAT: u32 = 20;
    const HARD: u32 = 1000;

    fn governor(state: LoadState, soft_limit: u32) -> Watermarks {
        let config = LoadControl {
            enabled: true,
            high_water_packets: HIWAT,
            low_water_packets: LOWAT,
            decrease_percent: 10,
            increase_percent: 2,
            ..LoadControl::default()
        };
        Watermarks {
            soft_limit,
            state,
            ..Watermarks::new(config, HARD)
        }
    }

    /// State and Soft_Limit before; Qlen and Cnum passed in; state and Soft_Limit after.
    type Row = ((LoadState, u32), (u32, u32), (LoadState, u32));

    #[test]
    fn every_transition_follows_the_table() {
        let table: &[Row] = &[
            // MONITOR: between the watermarks, both included, nothing happens.
            ((Monitor, 800), (LOWAT, 700), (Monitor, 800)),
            ((Monitor, 800), (HIWAT, 700), (Monitor, 800)),
            // MONITOR, overload: Soft_Limit falls to Cnum less 10 %.
            ((Monitor, 1000), (HIWAT + 1, 1000), (Decrease, 900)),
            ((Monitor, 1000), (HIWAT + 1, 500), (Decrease, 450)),
            ((Monitor, 1000), (HIWAT + 1, 5), (Decrease, 4)),
            ((Monitor, 1000), (HIWAT + 1, 0), (Decrease, 1)),
            // Soft_Limit cannot fall further.
            ((Monitor, 1), (HIWAT + 1, 0), (Decrease, 1)),
            // MONITOR, underload: Soft_Limit rises by 2 % of Hard_Limit.
            ((Monitor, 800), (LOWAT - 1, 800), (Increase, 820)),
            ((Monitor, 990), (LOWAT - 1, 990), (Increase, 1000)),
            // Soft_Limit cannot rise further.
            ((Monitor, 1000), (0, 1000), (Monitor, 1000)),
            // DECREASE waits for Cnum, whatever the value of Qlen.
            ((Decrease, 900), (HIWAT + 1, 900), (Decrease, 900)),
            ((Decrease, 900), (0, 900), (Decrease, 900)),
            ((Decrease, 900), (HIWAT + 1, 899), (Monitor, 900)),
            ((Decrease, 900), (0, 899), (Monitor, 900)),
            // INCREASE waits for Cnum.
            ((Increase, 820), (0, 819), (Increase, 820)),
            ((Increase, 820), (HIWAT, 819), (Increase, 820)),
            ((Increase, 820), (0, 820), (Monitor, 820)),
            // INCREASE, overload: Soft_Limit falls again, even if Cnum has just reached it.
            ((Increase, 820), (HIWAT + 1, 810), (Decrease, 729)),
            ((Increase, 820), (HIWAT + 1, 820), (Decrease, 738)),
        ];
        for ((state, soft), (qlen, cnum), after) in table {
            let mut governor = governor(*state, *soft);
            governor.run(&Load::of_queue(*qlen), *cnum);
            governor.check();
            let row = (state, soft, qlen, cnum);
            let now = (governor.state, governor.soft_limit);
            assert_eq!(now, *after, "from {row:?}");
        }
    }

    #[test]
    fn without_load_control_the_soft_limit_stays_at_the_hard_limit() {
        let mut governor = Watermarks::new(LoadControl::default(), HARD);
        governor.run(&Load::of_queue(1_000_000), HARD);
        assert_eq!((governor.state(), governor.soft_limit()), (Monitor, HARD));
    }

    #[test]
    fn the_decrease_ends_when_the_surplus_is_gone() {
        let mut governor = governor(Monitor, 1000);
        assert_eq!(governor.surplus(1000), 0);
        governor.run(&Load::of_queue(HIWAT + 1), 1000);
        assert_eq!(governor.surplus(1000), 101);
        assert_eq!(governor.surplus(899), 0);
        governor.run(&Load::of_queue(HIWAT + 1), 899);
        assert_eq!(governor.state(), Monitor);
    }

    #[test]
    fn a_hard_limit_of_zero_is_valid() {
        let mut governor = Watermarks::new(
            LoadControl {
                enabled: true,
                ..LoadControl::default()
            },
            0,
        );
        governor.run(&Load::of_queue(0), 0);
        governor.check();
    }
}

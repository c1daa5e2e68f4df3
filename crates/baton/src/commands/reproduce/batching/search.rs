//! Searches for a level and a timer that save crossings at little cost (batching 3.3 and 3.5).

use super::bench::{Bench, Measured, Trial};
use super::settings::{Setting, Settings, Sides};
use crate::failure::Failure;
use std::cmp::Ordering;

/// Maximum factor by which a best setting may increase response times.
pub(super) const MOST_RESPONSE_RATIO: f64 = 1.1;
/// Smallest difference in crossings that counts, as a share of the baseline's.
const LEAST_SAVING: f64 = 0.005;

/// A load with its baseline.
pub(super) struct Load {
    /// The load, at the baseline's settings.
    pub trial: Trial,
    /// The baseline.
    pub baseline: Measured,
}

/// A setting with its measurement.
#[derive(Clone)]
pub(super) struct Tried {
    pub settings: Settings,
    pub measured: Measured,
}

impl Load {
    /// Returns the name of the load.
    pub fn name(&self) -> &str {
        &self.trial.name
    }

    /// Measures these settings.
    ///
    /// # Errors
    /// Fails if a run fails, or if the user interrupts.
    pub fn try_all(&self, bench: &dyn Bench, all: &[Settings]) -> Result<Vec<Tried>, Failure> {
        let trial = |&settings: &Settings| Trial {
            name: format!("{}, {}", self.trial.name, settings.describe()),
            settings,
            ..self.trial.clone()
        };
        let trials: Vec<Trial> = all.iter().map(trial).collect();
        let measured = bench.measure_all(&trials)?;
        let tried = all.iter().zip(measured);
        Ok(tried
            .map(|(&settings, measured)| Tried { settings, measured })
            .collect())
    }

    /// Returns the settings that the search tries for one side. At level 1 the timer is irrelevant.
    pub fn grid(&self, bench: &dyn Bench, sides: Sides) -> Vec<Settings> {
        let grid = bench.grid(&self.baseline);
        let settings = grid.levels.iter().flat_map(|&level| {
            let with = move |&timer_us: &u32| Setting { level, timer_us };
            grid.timers_us.iter().map(with)
        });
        settings
            .map(|setting| Settings::of(sides, setting))
            .collect()
    }

    /// Returns the setting with the fewest crossings among those that increase the response time by no more than [`MOST_RESPONSE_RATIO`];
    /// of several, the fastest. Returns the baseline if no setting saves crossings.
    pub fn best(&self, tried: &[Tried]) -> Tried {
        let baseline = Tried {
            settings: Settings::BASELINE,
            measured: self.baseline.clone(),
        };
        let affordable = tried
            .iter()
            .filter(|tried| self.response_ratio(&tried.measured) <= MOST_RESPONSE_RATIO);
        match affordable.min_by(|a, b| self.by_crossings(a, b)) {
            Some(best) if self.crossings(best) < self.crossings(&baseline) => best.clone(),
            _ => baseline,
        }
    }

    /// Returns the setting with the fewest crossings, whatever its response time; of several, the fastest.
    pub fn fewest(&self, tried: &[Tried]) -> Tried {
        let least = tried.iter().min_by(|a, b| self.by_crossings(a, b));
        least.expect("the search tries some settings").clone()
    }

    /// Orders by crossings, and then by response time.
    fn by_crossings(&self, a: &Tried, b: &Tried) -> Ordering {
        let crossings = self.crossings(a).total_cmp(&self.crossings(b));
        crossings.then((a.measured.response_us.mean).total_cmp(&b.measured.response_us.mean))
    }

    /// Returns the crossings in units of the smallest difference that counts.
    fn crossings(&self, tried: &Tried) -> f64 {
        let unit = LEAST_SAVING * self.baseline.crossings.mean;
        (tried.measured.crossings.mean / unit).round()
    }

    /// Returns the ratio of the response time to the baseline's.
    pub fn response_ratio(&self, measured: &Measured) -> f64 {
        measured.response_us.mean / self.baseline.response_us.mean
    }

    /// Returns the ratio of the transfer time to the baseline's; 0 if there is no transfer time, as in the paper.
    pub fn transfer_ratio(&self, measured: &Measured) -> f64 {
        // The reply fits into one segment.
        if self.baseline.transfer_us.mean < 1.0 {
            return 0.0;
        }
        measured.transfer_us.mean / self.baseline.transfer_us.mean
    }

    /// Returns the ratio of the crossings to the baseline's.
    pub fn crossings_ratio(&self, measured: &Measured) -> f64 {
        measured.crossings.mean / self.baseline.crossings.mean
    }
}

//! The search for a level and a timer that save crossings at little cost (batching 3.3 and 3.5).

use super::lab::{Lab, Measured, Point};
use super::settings::{Setting, Settings, Sides, half};
use crate::failure::Failure;
use baton_sim::offload::Experiment;

/// A best setting may make response times longer by so much at most.
pub(super) const MOST_RESPONSE_RATIO: f64 = 1.1;
/// A difference in crossings that counts, as a share of the baseline's.
const LEAST_SAVING: f64 = 0.005;

/// Levels: powers of two up to the ring's depth.
pub(super) fn levels() -> impl Iterator<Item = u32> + Clone {
    (0..8).map(|power| 1 << power)
}

/// A load with its baseline.
pub(super) struct Load {
    /// What it is called.
    pub name: String,
    /// The machine at the baseline's settings.
    pub experiment: Experiment,
    /// The baseline.
    pub baseline: Measured,
}

/// A setting that was tried.
#[derive(Clone)]
pub(super) struct Tried {
    pub settings: Settings,
    pub measured: Measured,
}

impl Load {
    /// Measures these settings.
    ///
    /// # Errors
    /// A run that fails, an interrupt.
    pub fn try_all(&self, lab: &Lab<'_>, all: &[Settings]) -> Result<Vec<Tried>, Failure> {
        let points: Vec<Point> = all.iter().map(|settings| self.point(*settings)).collect();
        let measured = lab.measure(&points)?;
        let tried = all.iter().zip(measured);
        Ok(tried
            .map(|(&settings, measured)| Tried { settings, measured })
            .collect())
    }

    fn point(&self, settings: Settings) -> Point {
        let mut experiment = self.experiment.clone();
        settings.apply(&mut experiment);
        let name = format!("{}, {}", self.name, settings.describe());
        Point { name, experiment }
    }

    /// The settings that the paper's ranges allow for one side: levels in powers of two; timers of 1, 5 and 10 ms and half the baseline's
    /// response time. At level 1 the timer is irrelevant.
    pub fn grid(&self, sides: Sides) -> Vec<Settings> {
        let mut timers = vec![1_000, 5_000, 10_000, half(self.baseline.response_us.mean)];
        timers.sort_unstable();
        timers.dedup();
        let settings = levels().skip(1).flat_map(|level| {
            let with = move |&timer_us: &u32| Setting { level, timer_us };
            timers.iter().map(with).collect::<Vec<_>>()
        });
        settings
            .map(|setting| Settings::of(sides, setting))
            .collect()
    }

    /// The one with the fewest crossings of those that cost no more response time than [`MOST_RESPONSE_RATIO`]; of several the fastest.
    /// The baseline if none saves any.
    pub fn best(&self, tried: &[Tried]) -> Tried {
        let baseline = Tried {
            settings: Settings::BASELINE,
            measured: self.baseline.clone(),
        };
        let unit = LEAST_SAVING * self.baseline.crossings.mean;
        let rank = |tried: &Tried| {
            let crossings = (tried.measured.crossings.mean / unit).round();
            (crossings, tried.measured.response_us.mean)
        };
        let affordable = tried
            .iter()
            .filter(|tried| self.response_ratio(&tried.measured) <= MOST_RESPONSE_RATIO);
        let best = affordable.min_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        match best {
            Some(best) if rank(best).0 < rank(&baseline).0 => best.clone(),
            _ => baseline,
        }
    }

    /// Response time over the baseline's.
    pub fn response_ratio(&self, measured: &Measured) -> f64 {
        measured.response_us.mean / self.baseline.response_us.mean
    }

    /// Transfer time over the baseline's; 0 where there is none, as in the paper.
    pub fn transfer_ratio(&self, measured: &Measured) -> f64 {
        // All of it in one segment.
        if self.baseline.transfer_us.mean < 1.0 {
            return 0.0;
        }
        measured.transfer_us.mean / self.baseline.transfer_us.mean
    }

    /// Crossings over the baseline's.
    pub fn crossings_ratio(&self, measured: &Measured) -> f64 {
        measured.crossings.mean / self.baseline.crossings.mean
    }
}

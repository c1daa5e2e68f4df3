//! On-off sources.

use super::pareto::Pareto;
use super::{picoseconds, unit};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sources that send evenly while they are on, and nothing while they are off. The lengths of both periods are drawn from Pareto
/// distributions. The traffic of many such sources is self-similar, with a Hurst parameter of (3 - the smaller shape) / 2, up to times of
/// the order of a run (Willinger, Taqqu, Sherman and Wilson, *Self-Similarity Through High-Variability*, IEEE/ACM Transactions on
/// Networking 5(1), 1997).
///
/// The mean rate of a run approaches the specified one only if the run is much longer than the periods, and slowly, because the tails are
/// heavy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OnOffSpec {
    /// Number of sources.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sources: u32,
    /// Mean time for which a source is on, milliseconds. (Assumed: short compared to a run of some seconds.)
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9))]
    pub on_ms: f64,
    /// Mean time for which a source is off, milliseconds. (Assumed.)
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9))]
    pub off_ms: f64,
    /// The share of on periods over `t` falls as `t^-on_shape`. (1.2: users of the web had 1.0 to 1.3; Crovella and Bestavros, *Self-Similarity
    /// in World Wide Web Traffic*, IEEE/ACM Transactions on Networking 5(6), 1997, section V.)
    #[schemars(extend("exclusiveMinimum" = 1, "maximum" = 100))]
    pub on_shape: f64,
    /// The share of off periods over `t` falls as `t^-off_shape`. (1.5: Crovella and Bestavros, as for `on_shape`.)
    #[schemars(extend("exclusiveMinimum" = 1, "maximum" = 100))]
    pub off_shape: f64,
}

impl Default for OnOffSpec {
    fn default() -> Self {
        Self {
            sources: 100,
            on_ms: 10.0,
            off_ms: 30.0,
            on_shape: 1.2,
            off_shape: 1.5,
        }
    }
}

/// All sources together.
#[derive(Clone, Debug)]
pub(super) struct OnOff {
    on: Pareto,
    off: Pareto,
    /// Time between two arrivals of a source that stays on, seconds.
    gap: f64,
    sources: Vec<Source>,
    /// Next arrival of each source, picoseconds, the earliest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    now: u64,
    random: Pcg64,
}

/// A source. Times are in seconds.
#[derive(Clone, Copy, Debug)]
struct Source {
    now: f64,
    /// Time for which the source stays on from `now`.
    on_for: f64,
    /// Time that the source must be on before its next arrival.
    sends_after: f64,
}

impl OnOff {
    /// Creates sources that together send `per_second`. Their initial state is that of sources that have been running forever.
    pub(super) fn new(spec: &OnOffSpec, per_second: f64, seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let (on_s, off_s) = (spec.on_ms / 1e3, spec.off_ms / 1e3);
        let (on, off) = (
            Pareto::new(on_s, spec.on_shape),
            Pareto::new(off_s, spec.off_shape),
        );
        let share_on = on_s / (on_s + off_s);
        let gap = f64::from(spec.sources) * share_on / per_second;
        let source = |_| {
            let is_on = unit(&mut random) <= share_on;
            let (now, on_for) = match is_on {
                true => (0.0, on.sample_rest(&mut random)),
                false => (off.sample_rest(&mut random), on.sample(&mut random)),
            };
            let sends_after = gap * unit(&mut random);
            Source {
                now,
                on_for,
                sends_after,
            }
        };
        let sources = (0..spec.sources).map(source).collect();
        let mut all = Self {
            on,
            off,
            gap,
            sources,
            next: BinaryHeap::new(),
            now: 0,
            random,
        };
        (0..spec.sources as usize).for_each(|number| all.plan(number));
        all
    }

    /// Schedules the next arrival of a source.
    fn plan(&mut self, number: usize) {
        let source = &mut self.sources[number];
        while source.on_for < source.sends_after {
            source.sends_after -= source.on_for;
            source.now += source.on_for + self.off.sample(&mut self.random);
            source.on_for = self.on.sample(&mut self.random);
        }
        source.now += source.sends_after;
        source.on_for -= source.sends_after;
        source.sends_after = self.gap;
        self.next.push(Reverse((picoseconds(source.now), number)));
    }

    /// Returns the time from the last arrival to the next, picoseconds.
    pub(super) fn next_wait(&mut self) -> u64 {
        let Reverse((time, number)) = self.next.pop().expect("there is at least one source");
        self.plan(number);
        let wait = time - self.now;
        self.now = time;
        wait
    }
}

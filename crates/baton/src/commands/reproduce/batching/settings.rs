//! Levels and timers of both sides.

use super::machine::offload;
use baton_bus::Batching;
use baton_sim::config::Experiment;

/// Sizes of the files in bytes, with their names in the paper.
pub(super) const FILES: [(u32, &str); 3] = [
    (1 << 10, "1 KB"),
    (64 << 10, "64 KB"),
    (512 << 10, "512 KB"),
];

/// Level and timer of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Level, descriptors.
    pub level: u32,
    /// Timer, microseconds.
    pub timer_us: u32,
}

impl Setting {
    /// Setting of the baseline: "at least one entry in the queue making the timer irrelevant" (batching 3.3).
    pub const MINIMAL: Self = Self {
        level: 1,
        timer_us: 1_000,
    };

    /// Returns a level that no queue can exceed, with a timer of half the baseline's response time (batching 3.4).
    pub fn maximal(baseline_response_us: f64) -> Self {
        Self {
            level: 128,
            timer_us: half(baseline_response_us),
        }
    }

    fn apply(self, batching: &mut Batching) {
        batching.level = self.level;
        batching.timer_us = self.timer_us;
    }
}

/// Returns half of a response time, microseconds, at least 1.
pub(super) fn half(response_us: f64) -> u32 {
    (response_us / 2.0).round().max(1.0) as u32
}

baton_named::named! {
    /// Which sides batch: the host, the adapter or both.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Sides {
        Host => "Host batching",
        Adapter => "Adapter batching",
        Both => "Host and Adapter batching",
    }
}

/// Settings of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub host: Setting,
    pub adapter: Setting,
}

impl Settings {
    /// The baseline.
    pub const BASELINE: Self = Self {
        host: Setting::MINIMAL,
        adapter: Setting::MINIMAL,
    };

    /// Returns settings with `setting` on these sides, and the baseline's setting on the other side.
    pub fn of(sides: Sides, setting: Setting) -> Self {
        let on = |wanted: Sides| {
            if sides == wanted || sides == Sides::Both {
                setting
            } else {
                Setting::MINIMAL
            }
        };
        Self {
            host: on(Sides::Host),
            adapter: on(Sides::Adapter),
        }
    }

    /// Applies the settings to an experiment.
    pub fn apply(self, experiment: &mut Experiment) {
        let offload = offload(experiment);
        self.host.apply(&mut offload.host.interface.batching);
        self.adapter.apply(&mut offload.adapter.interface.batching);
    }

    /// Returns the sides whose setting is not minimal, or both sides if both settings are minimal.
    pub fn sides(self) -> Sides {
        match (
            self.host != Setting::MINIMAL,
            self.adapter != Setting::MINIMAL,
        ) {
            (true, false) => Sides::Host,
            (false, true) => Sides::Adapter,
            _ => Sides::Both,
        }
    }

    /// Describes level and timer of the side that is not minimal, or of both sides if both are not minimal: `4, 1 ms`.
    pub fn describe(self) -> String {
        let side = |setting: Setting| {
            let timer = f64::from(setting.timer_us) / 1e3;
            format!("{}, {timer:.2} ms", setting.level)
        };
        if self == Self::BASELINE {
            return "1 (none saves any)".to_owned();
        }
        match self.sides() {
            Sides::Host => side(self.host),
            Sides::Adapter => side(self.adapter),
            Sides::Both => format!("host {}; adapter {}", side(self.host), side(self.adapter)),
        }
    }
}

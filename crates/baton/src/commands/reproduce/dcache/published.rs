//! What is published of the server without a cache. Numbers with caches are predictions here and are not compared.

use super::Source;
use baton_workload::Preset;

/// A row of table 1 and of figure 4, without a cache.
pub struct Uncached {
    pub content_mbps: f64,
    pub request_rate: f64,
    /// `None`: "over 90 %" (NASA, Rice), or not given (Berkeley).
    pub utilisation_percent: Option<f64>,
}

/// Content is "around 60 %" of the bus's traffic in every trace (section 3).
pub(super) const CONTENT_PERCENT: f64 = 60.0;
/// Overhead is "around 30 %" of it.
pub(super) const OVERHEAD_PERCENT: f64 = 30.0;

impl Uncached {
    /// What is published of the trace that `source` stands for; `None` for excerpts, which are not that trace.
    pub(super) const fn of(source: &Source) -> Option<Self> {
        match source {
            Source::Generated(preset) => Self::of_trace(*preset),
            Source::Excerpt { .. } | Source::Own(_) => None,
        }
    }

    /// What is published of the trace that a preset stands for.
    ///
    /// # Panics
    /// When it stands for none of the paper.
    pub const fn of_preset(preset: Preset) -> Self {
        Self::of_trace(preset).expect("a preset of the data caching paper")
    }

    const fn of_trace(preset: Preset) -> Option<Self> {
        let (content_mbps, request_rate, utilisation_percent) = match preset {
            Preset::Berkeley => (161.0, 828.0, None),
            Preset::Ibm => (502.0, 22_777.0, Some(48.0)),
            Preset::Nasa => (1198.0, 2755.0, None),
            Preset::Rice => (1126.0, 4361.0, None),
            Preset::WorldCup => (794.0, 15_190.0, Some(69.0)),
            Preset::Demo | Preset::WorldCupLifetimes | Preset::Cdn => return None,
        };
        Some(Self {
            content_mbps,
            request_rate,
            utilisation_percent,
        })
    }
}

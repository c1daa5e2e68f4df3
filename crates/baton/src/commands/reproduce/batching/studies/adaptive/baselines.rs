//! The fixed settings that adaptive batching is compared with.

use crate::commands::reproduce::batching::bench::Measured;
use crate::commands::reproduce::batching::settings::{Setting, Settings, Sides};

/// Levels.
pub(super) const LEVELS: [u32; 6] = [2, 4, 8, 16, 32, 128];
/// Timers, per cent of the machine's; with the longest, only the level matters.
pub(super) const TIMERS_PERCENT: [u32; 5] = [5, 25, 100, 500, 2_000];
/// Number of best settings of each side that are combined with those of the other side.
const BEST: usize = 3;

/// Returns all levels with all timers, on host, adapter and both.
pub(super) fn every_setting(timer_us: u32) -> Vec<Settings> {
    let mut settings = Vec::new();
    for level in LEVELS {
        for percent in TIMERS_PERCENT {
            let timer_us = (timer_us * percent / 100).max(1);
            let setting = Setting { level, timer_us };
            settings.extend(Sides::ALL.map(|sides| Settings::of(sides, setting)));
        }
    }
    settings
}

/// Returns combinations of the best affordable settings of host and adapter.
pub(super) fn combined(
    fixed: &[(Settings, Measured)],
    is_affordable: impl Fn(&Measured) -> bool,
) -> Vec<Settings> {
    let best = |side: Sides| {
        let mut of_side: Vec<&(Settings, Measured)> = fixed
            .iter()
            .filter(|(settings, measured)| settings.sides() == side && is_affordable(measured))
            .collect();
        of_side.sort_by(|a, b| a.1.crossings.mean.total_cmp(&b.1.crossings.mean));
        of_side.truncate(BEST);
        of_side
    };
    let (hosts, adapters) = (best(Sides::Host), best(Sides::Adapter));
    let with = |host: &Settings| {
        let host = host.host;
        adapters.iter().map(move |(adapter, _)| Settings {
            host,
            adapter: adapter.adapter,
        })
    };
    let pairs = hosts.iter().flat_map(|(host, _)| with(host));
    pairs.filter(|pair| pair.host != pair.adapter).collect()
}

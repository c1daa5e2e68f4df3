//! The resources that limit the throughput of a run.

use super::Results;
use serde::Serialize;
use std::fmt;

baton_named::named! {
    /// A resource that is busy nearly all the time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Limit {
        /// The host's processor.
        HostProcessor => "the host's processor",
        /// The NICs' processors.
        NicProcessor => "the NIC's processor",
        /// The link's rate.
        Link => "the link",
        /// The interconnect between host and NICs.
        Bus => "the bus between host and NIC",
        /// The busiest of the disks.
        Disks => "the disks",
    }
}

/// Share of busy time from which on a resource counts as a limit.
const FULL_PERCENT: f64 = 95.0;
/// Size of a full frame with preamble, gap, headers and timestamps, divided by the size of its data.
const FRAME_PER_CONTENT: f64 = 1538.0 / 1448.0;

impl Limit {
    /// Returns the resources that limit a run.
    pub fn all_of(result: &Results) -> Vec<Self> {
        let nics = f64::from(result.experiment.nics.count());
        let link = f64::from(result.experiment.wire.rate_mbps) * nics;
        let content = result.clients.content_mbps;
        let disks = result.disk.as_ref();
        let busiest_disk = disks.map_or(0.0, |disk| {
            disk.utilisation_percent.iter().copied().fold(0.0, f64::max)
        });
        let bus = result.interconnect.as_ref();
        let uses = [
            (Self::HostProcessor, 100.0 - result.host.idle_percent),
            (Self::NicProcessor, 100.0 - result.nic.idle_percent),
            (Self::Link, 100.0 * content * FRAME_PER_CONTENT / link),
            (Self::Bus, bus.map_or(0.0, |bus| bus.utilisation_percent)),
            (Self::Disks, busiest_disk),
        ];
        let full = uses
            .into_iter()
            .filter(|(_, percent)| *percent >= FULL_PERCENT);
        full.map(|(limit, _)| limit).collect()
    }

    /// Returns the name in tables.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::HostProcessor => "host",
            Self::NicProcessor => "NIC",
            Self::Link => "link",
            Self::Bus => "bus",
            Self::Disks => "disks",
        }
    }

    /// Returns a clause that describes these limits.
    pub fn told(limits: &[Self]) -> String {
        let names: Vec<String> = limits.iter().map(ToString::to_string).collect();
        match names.as_slice() {
            [] => "there is no bottleneck, because the clients do not request more".to_owned(),
            [name] => format!("{name} is the limit"),
            names => format!("{} are the limits", names.join(" and ")),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

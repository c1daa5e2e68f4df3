//! The NICs and hosts of the report, by name: their profiles are read elsewhere.

use baton_sim::config::{HostConfig, NicHardware};

/// The six NICs of the report, in its order: best application results first.
const OF_REPORT: [&str; 6] = [
    "nic-intel-server",
    "nic-intel-desktop",
    "nic-ace-optimized",
    "nic-netgear",
    "nic-3com",
    "nic-ace",
];

/// The NICs and hosts that ship with the program.
#[derive(Clone, Copy, Debug)]
pub struct Profiles {
    /// Returns the NIC of this name.
    pub nic: fn(&str) -> NicHardware,
    /// Returns the host of this name.
    pub host: fn(&str) -> HostConfig,
}

impl Profiles {
    /// Returns the NICs of the report, in its order.
    pub(crate) fn nics_of_report(&self) -> Vec<NicHardware> {
        OF_REPORT.map(self.nic).into()
    }
}

#[cfg(test)]
pub(crate) use baton_config::parts::{shipped_host as host, shipped_nic as nic};

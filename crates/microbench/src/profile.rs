//! The NICs and hosts of the report.

use baton_config::parts;
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

/// Returns the NICs of the report, in its order.
///
/// # Panics
/// Never: the profiles ship with the program.
pub fn nics_of_report() -> Vec<NicHardware> {
    OF_REPORT.map(nic).into()
}

/// Returns a NIC that ships with the program.
///
/// # Panics
/// There is no such NIC.
pub fn nic(name: &str) -> NicHardware {
    parts::nic(("NIC", name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a host that ships with the program.
///
/// # Panics
/// There is no such host.
pub fn host(name: &str) -> HostConfig {
    parts::host(name).unwrap_or_else(|error| panic!("{error}"))
}

//! The report's applications on the simulated NICs: a web server and an IP router (sections 2.1 to 2.3, Figures 1 and 3).

mod logs;
mod router;
mod traffic;
mod web;

pub use logs::StandInLog;
pub use router::{Drivers, RouterMeasurement, RouterSettings, RouterTrial, measure_router};
pub use traffic::RouterTraffic;
pub use web::{WebMeasurement, WebSettings, WebTrial, measure_web};

#[cfg(test)]
mod tests;

use crate::frame::LinkRate;
use crate::port::{Resource, Use};
use baton_sim::config::{HostConfig, NicHardware};

/// Machines of the report (section 2.3) with a NIC under test in the server or router.
#[derive(Clone, Debug)]
pub struct Machines<'a> {
    /// The NIC under test.
    pub nic: &'a NicHardware,
    /// The host of the server or router.
    pub host: &'a HostConfig,
    /// The NIC of the clients.
    pub client_nic: &'a NicHardware,
    /// The host of the clients.
    pub client_host: &'a HostConfig,
}

impl Machines<'_> {
    /// Returns the rate of all links, which is that of the slower NIC.
    pub fn link_rate(&self) -> LinkRate {
        self.nic.link.min(self.client_nic.link)
    }
}

/// Returns the resources of the machine under test that were fully used, busiest first.
pub fn full(uses: &[Use]) -> Vec<Resource> {
    let mut full: Vec<&Use> = uses.iter().filter(|one| one.is_full()).collect();
    full.sort_by(|a, b| b.share.total_cmp(&a.share));
    full.iter().map(|one| one.resource).collect()
}

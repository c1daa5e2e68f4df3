//! Load control: how many connections may be on a NIC.

use super::Raised;
use baton_nic::{Governor, Load};
use pyo3::prelude::*;

/// A rule for one NIC. Its last answer is Soft_Limit.
#[derive(Debug)]
pub struct LoadControl {
    rule: Option<Py<PyAny>>,
    soft_limit: u32,
    raised: Raised,
}

impl LoadControl {
    /// Creates the rule that `make` returns for a NIC with this Hard_Limit, which is also the initial Soft_Limit.
    pub fn new(make: &Py<PyAny>, hard_limit: u32, raised: &Raised) -> Self {
        Self {
            rule: raised.ask(|py| make.call1(py, (hard_limit,))),
            soft_limit: hard_limit,
            raised: raised.clone(),
        }
    }
}

impl Governor for LoadControl {
    fn run(&mut self, load: &Load, cnum: u32) {
        let Some(rule) = &self.rule else { return };
        let ask = |py: Python<'_>| rule.call1(py, (NicLoad(*load), cnum))?.extract::<u32>(py);
        if let Some(limit) = self.raised.ask(ask) {
            self.soft_limit = limit;
        }
    }

    fn soft_limit(&self) -> u32 {
        self.soft_limit
    }
}

/// The load of a NIC. Counts are totals since the start of the run.
#[pyclass(frozen, module = "baton")]
pub struct NicLoad(Load);

getters! { NicLoad
    /// Simulated time, seconds.
    now_s: f64 = now.as_secs_f64();
    /// Packets of connections on the NIC that are waiting.
    qlen: u32 = qlen;
    /// Packets of connections on hosts, in both directions.
    host_packets: u64 = host_packets;
    /// Events of connections on the NIC.
    nic_packets: u64 = nic_packets;
    /// Seconds for which the NIC's processor has worked, if that is known.
    busy_s: Option<f64> = busy.map(|busy| busy.as_secs_f64());
}

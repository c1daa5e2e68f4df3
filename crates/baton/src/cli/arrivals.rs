//! Options for when requests come.

use crate::config::Setting;
use baton_workload::load::{Rate, Think};
use clap::Args;

/// Options for when requests are due.
#[derive(Debug, Args)]
pub struct ArrivalArgs {
    /// Send requests in an open loop, 2x as often as in the log, or 5000/s (load.rate)
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// When requests come: at the times of the log, even, poisson or on-off (load.arrivals)
    #[arg(long, value_name = "HOW")]
    pub arrivals: Option<String>,
    /// Time that clients think between a response and the next request: 7s, exponential:7s, pareto:7s:1.5 or log (load.think)
    #[arg(long, value_name = "TIME")]
    pub think: Option<Think>,
}

impl ArrivalArgs {
    pub(super) fn settings(&self) -> impl Iterator<Item = Setting> {
        let values = [
            (
                "--rate",
                "load.rate",
                self.rate.map(|rate| rate.to_string()),
            ),
            ("--arrivals", "load.arrivals", self.arrivals.clone()),
            (
                "--think",
                "load.think",
                self.think.map(|think| think.to_string()),
            ),
        ];
        let given = values.into_iter();
        given.filter_map(|(flag, path, value)| Some(Setting::of_flag(flag, path, value?)))
    }
}

//! Specification of a load in an experiment.

use super::{Arrivals, OnOffSpec, Rate, Think};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When requests are due. Without a rate, clients send requests in a closed loop: infinite demand, or with think times.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoadSpec {
    /// Mean number of requests per second of an open loop: `2x` is twice that of the log, `5000/s` is 5000 requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub rate: Option<Rate>,
    /// When connections arrive: `log` (the default for a log), `even`, `poisson` (the default otherwise) or `on-off`. Only `log` also says
    /// when the requests on each connection are due; with the others, they follow each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// How long a client thinks between a response and its next request, and in a closed loop also before it opens a connection: `7s`,
    /// `exponential:7s`, `pareto:7s:1.5` (mean and shape) or `log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub think: Option<Think>,
    /// The sources, if arrivals are `on-off`.
    pub on_off: OnOffSpec,
}

/// An invalid parameter.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct LoadError {
    /// The parameter.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// Description of valid values.
    pub expected: &'static str,
}

impl LoadSpec {
    /// Returns the arrival process of connections, or `None` in a closed loop; `is_log` states whether requests have times of their own.
    pub fn arrivals(&self, is_log: bool) -> Option<Arrivals> {
        let usual = match is_log {
            true => Arrivals::Log,
            false => Arrivals::Poisson,
        };
        self.rate.map(|_| self.arrivals.unwrap_or(usual))
    }

    /// Returns whether the log's times are needed.
    pub fn needs_times(&self) -> bool {
        self.arrivals(true) == Some(Arrivals::Log)
            || matches!(self.rate, Some(Rate::Times(_)))
            || self.think == Some(Think::Log)
    }

    /// Checks the parameters; `is_log` states whether requests have times of their own.
    ///
    /// # Errors
    /// The first invalid parameter, with its value and what was expected.
    pub fn check(&self, is_log: bool) -> Result<(), LoadError> {
        let refuse = |field, value: String, expected| {
            Err(LoadError {
                field,
                value,
                expected,
            })
        };
        if !is_log {
            if let Some(rate @ Rate::Times(_)) = self.rate {
                let expected =
                    "requests a second, as in 5000/s, because this workload is not a log";
                return refuse("rate", rate.to_string(), expected);
            }
            if self.arrivals == Some(Arrivals::Log) {
                let expected = "even, poisson or on-off, because this workload is not a log";
                return refuse("arrivals", "log".to_owned(), expected);
            }
            if self.think == Some(Think::Log) {
                let expected = "a time, because this workload is not a log";
                return refuse("think", "log".to_owned(), expected);
            }
        }
        if let (None, Some(arrivals)) = (self.rate, self.arrivals) {
            let expected = "a rate with it (load.rate, --rate)";
            return refuse("arrivals", format!("{arrivals:?}"), expected);
        }
        if let (Some(Arrivals::Log), Some(think)) = (self.arrivals(is_log), self.think) {
            let expected = "no think time, because requests come at the times of the log";
            return refuse("think", think.to_string(), expected);
        }
        self.on_off.check()
    }
}

/// Maximum number of sources; each has an entry in a list.
const MOST_SOURCES: u32 = 1_000_000;

impl OnOffSpec {
    fn check(&self) -> Result<(), LoadError> {
        let within =
            |field, value: f64, low: f64, high: f64, expected| match value > low && value <= high {
                true => Ok(()),
                false => Err(LoadError {
                    field,
                    value: value.to_string(),
                    expected,
                }),
            };
        let sources = f64::from(self.sources);
        within(
            "on_off.sources",
            sources,
            0.0,
            f64::from(MOST_SOURCES),
            "1 to 1000000",
        )?;
        let positive = "more than 0, at most 1e9";
        within("on_off.on_ms", self.on_ms, 0.0, 1e9, positive)?;
        within("on_off.off_ms", self.off_ms, 0.0, 1e9, positive)?;
        let shape = "more than 1, at most 100";
        within("on_off.on_shape", self.on_shape, 1.0, 100.0, shape)?;
        within("on_off.off_shape", self.off_shape, 1.0, 100.0, shape)
    }
}

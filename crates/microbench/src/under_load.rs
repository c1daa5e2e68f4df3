//! Latency under load: at rates below the highest without loss, where queues are short, up to it, where they are not.

use crate::measure::Settings;
use crate::port::{Latency, Load, Port, Request};
use crate::test::Test;
use serde::Serialize;

/// Shares of the highest rate without loss at which latency is measured.
pub const SHARES: [f64; 5] = [0.1, 0.5, 0.9, 0.95, 1.0];

/// Latency at a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UnderLoad {
    /// The share of the highest rate without loss.
    pub share: f64,
    /// Frames a second each way.
    pub rate: f64,
    /// Latency of datagrams there; `None` if it is not known.
    pub latency: Option<Latency>,
}

/// Measures it, for a test with datagrams of which so many a second are the most without loss.
///
/// # Errors
/// Those of trials.
pub fn under_load<P: Port>(
    port: &mut P,
    test: Test,
    settings: &Settings,
    most: f64,
) -> Result<Vec<UnderLoad>, P::Error> {
    let at = |share: f64| {
        let rate = share * most;
        let (warm_up, duration) = settings.trials.of(rate);
        let trial = port.trial(&Request {
            test,
            load: Load::Rate(rate),
            warm_up,
            duration,
        })?;
        Ok(UnderLoad {
            share,
            rate,
            latency: trial.latency,
        })
    };
    SHARES.into_iter().map(at).collect()
}

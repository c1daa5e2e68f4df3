//! Latency under load, at shares of the highest rate without loss: queues are short at low rates and long near the highest.

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
    /// Frames per second in each direction.
    pub rate: f64,
    /// Latency of datagrams at this load; `None` if it is not known.
    pub latency: Option<Latency>,
}

/// Measures latency under load for a test with datagrams, given the highest rate without loss in frames per second.
///
/// # Errors
/// Those of the trials.
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

//! A web server: what its clients get of it.

use super::Machines;
use crate::port::Use;
use crate::simulated::{SimulationError, serve};
use baton_workload::Replay;
use serde::Serialize;

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebTrial {
    /// Users, on all client machines together.
    pub users: u32,
    /// How long was counted, seconds.
    pub seconds: f64,
    /// Responses that clients got whole.
    pub responses: u64,
    /// Bytes of files that they got.
    pub content_bytes: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections that ended before all was answered.
    pub lost_connections: u64,
    /// Frames that were lost anywhere.
    pub lost_frames: u64,
    /// Interrupts of the server.
    pub interrupts: u64,
    /// How busy what of the server was.
    pub uses: Vec<Use>,
    /// How busy the processor of the busiest client machine was, 0 to 1.
    pub client_host: f64,
}

impl WebTrial {
    /// HTTP content, Mb/s.
    pub fn mbps(&self) -> f64 {
        self.content_bytes as f64 * 8.0 / self.seconds / 1e6
    }

    /// Requests that were answered, a second.
    pub fn requests_per_s(&self) -> f64 {
        self.responses as f64 / self.seconds
    }

    /// Connections that were opened, a millisecond.
    pub fn connections_per_ms(&self) -> f64 {
        self.connections as f64 / self.seconds / 1e3
    }
}

/// How to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSettings {
    /// Client machines.
    pub machines: u32,
    /// Numbers of users that are tried.
    pub users: Vec<u32>,
    /// Responses before anything is counted, and those that are. The more users there are the more it takes: large responses are under way
    /// when small ones are long done.
    pub warm_up: u64,
    /// See `warm_up`.
    pub responses: u64,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            machines: 3,
            users: vec![48, 96],
            warm_up: 4_000,
            responses: 16_000,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebMeasurement {
    /// The trial with the most content.
    pub best: WebTrial,
    /// All of them, fewest users first.
    pub trials: Vec<WebTrial>,
}

/// Measures what a web server gives to as many clients as it takes. All get parts of the same log, in its order.
///
/// # Errors
/// A profile describes what cannot be simulated.
///
/// # Panics
/// When no number of users is to be tried.
pub fn measure_web(
    machines: &Machines<'_>,
    log: &Replay,
    settings: &WebSettings,
) -> Result<WebMeasurement, SimulationError> {
    let users = settings.users.iter();
    let trials = users.map(|users| serve(machines, log, settings, *users));
    let trials = trials.collect::<Result<Vec<_>, _>>()?;
    let best = trials.iter().max_by(|a, b| a.mbps().total_cmp(&b.mbps()));
    Ok(WebMeasurement {
        best: best.cloned().expect("some were made"),
        trials,
    })
}

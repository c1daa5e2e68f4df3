//! A web server, and the measurement of how much its clients get from it.

use super::Machines;
use crate::port::Use;
use crate::simulated::{SimulationError, serve};
use baton_workload::Replay;
use serde::Serialize;

/// Result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebTrial {
    /// Users, on all client machines together.
    pub users: u32,
    /// Length of the counted part, in seconds.
    pub seconds: f64,
    /// Responses that clients received completely.
    pub responses: u64,
    /// Bytes of files that clients received.
    pub content_bytes: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections that ended before all requests were answered.
    pub lost_connections: u64,
    /// Frames that were lost anywhere.
    pub lost_frames: u64,
    /// Interrupts at the server.
    pub interrupts: u64,
    /// How busy each resource of the server was.
    pub uses: Vec<Use>,
    /// Utilisation of the processor of the busiest client machine, 0 to 1.
    pub client_host: f64,
}

impl WebTrial {
    /// Returns the rate of HTTP content, in Mb/s.
    pub fn mbps(&self) -> f64 {
        self.content_bytes as f64 * 8.0 / self.seconds / 1e6
    }

    /// Returns the number of requests answered per second.
    pub fn requests_per_s(&self) -> f64 {
        self.responses as f64 / self.seconds
    }

    /// Returns the number of connections opened per millisecond.
    pub fn connections_per_ms(&self) -> f64 {
        self.connections as f64 / self.seconds / 1e3
    }
}

/// Parameters of the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSettings {
    /// Number of client machines.
    pub machines: u32,
    /// Numbers of users to try.
    pub users: Vec<u32>,
    /// Number of responses before counting starts. The more users there are, the more responses are needed, because large responses are
    /// still in progress when small ones have long been received.
    pub warm_up: u64,
    /// Number of responses that are counted.
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

/// Result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebMeasurement {
    /// The trial with the most content.
    pub best: WebTrial,
    /// All trials, fewest users first.
    pub trials: Vec<WebTrial>,
}

/// Measures the throughput of a web server with as many clients as it can serve. The clients replay parts of the same log, in its order.
///
/// # Errors
/// A profile describes something that cannot be simulated.
///
/// # Panics
/// When there are no numbers of users to try.
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
        best: best.cloned().expect("at least one trial was made"),
        trials,
    })
}

//! How long to run, and the seed.

use super::{Invalid, positive};
use serde::{Deserialize, Serialize};

/// How long to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Frames at the server's NIC before measurement starts, with full timing (handoff-policies 4.2).
    pub warmup_packets: u64,
    /// Frames at the server's NIC that are measured.
    pub measured_packets: u64,
    /// Responses before measurement starts, where the length is given in responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_responses: Option<u64>,
    /// Responses that are measured; in place of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_responses: Option<u64>,
    /// Interval of the time series, microseconds of simulated time.
    pub sample_us: u64,
    /// Simulated seconds after which the run ends even if it saw fewer packets.
    pub limit_s: u64,
    /// Begin with a warm file cache: as if the log, or each file, had been asked for once. Without effect where the file cache
    /// has no limit.
    pub preload: bool,
    /// Charge processors and memory. Off: host and NIC take no time, only wires do.
    pub cost_models: bool,
    /// Call every `check()` after every event (slow; for tests).
    pub check: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            warmup_packets: 400_000,
            measured_packets: 600_000,
            warmup_responses: None,
            measured_responses: None,
            sample_us: 10_000,
            limit_s: 600,
            preload: true,
            cost_models: true,
            check: false,
        }
    }
}

/// How far a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many frames at the server's NICs, both directions.
    Packets(u64),
    /// So many complete responses.
    Responses(u64),
}

impl Length {
    /// How many.
    pub const fn count(self) -> u64 {
        match self {
            Self::Packets(count) | Self::Responses(count) => count,
        }
    }

    /// As far as this goes if it begins at the end of `earlier`, which counts the same.
    pub fn after(self, earlier: Self) -> Self {
        match self {
            Self::Packets(count) => Self::Packets(earlier.count() + count),
            Self::Responses(count) => Self::Responses(earlier.count() + count),
        }
    }
}

impl RunConfig {
    /// What comes before measurement, and what is measured.
    pub fn lengths(&self) -> [Length; 2] {
        match self.measured_responses {
            Some(measured) => [self.warmup_responses.unwrap_or(0), measured].map(Length::Responses),
            None => [self.warmup_packets, self.measured_packets].map(Length::Packets),
        }
    }

    /// The seed of all that is drawn at this NIC. The first one's is the run's own; those of the others differ in bits that no other
    /// salt has.
    pub(crate) fn nic_seed(&self, nic: u8) -> u64 {
        self.seed ^ u64::from(nic) << 48
    }

    /// Checks what types cannot.
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        positive("run.measured_packets", self.measured_packets)?;
        if let Some(responses) = self.measured_responses {
            positive("run.measured_responses", responses)?;
        } else if let Some(responses) = self.warmup_responses {
            let expected = "run.measured_responses beside it";
            return Err(Invalid::new("run.warmup_responses", responses, expected));
        }
        positive("run.sample_us", self.sample_us)?;
        positive("run.limit_s", self.limit_s)
    }
}

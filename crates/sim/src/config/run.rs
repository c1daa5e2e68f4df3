//! How long to run, and the seed.

use super::{Invalid, one_to, positive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper limit of seconds, passes and per cent.
const MOST: f64 = 1e9;
const MOST_LENGTHS: u32 = 1_000_000;
/// Length of the warm-up if the configuration does not give one.
const WARMUP_PACKETS: u64 = 400_000;

/// How long to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Seed of all random draws.
    pub seed: u64,
    /// Frames at the server's NIC before measurement starts, with full timing (handoff-policies 4.2). If neither this nor
    /// `warmup_responses` is given: 400,000, or none if the length is given in responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_packets: Option<u64>,
    /// Frames at the server's NIC that are measured.
    #[schemars(range(min = 1))]
    pub measured_packets: u64,
    /// Responses before measurement starts, instead of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_responses: Option<u64>,
    /// Responses that are measured, instead of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub measured_responses: Option<u64>,
    /// Simulated seconds that are measured, instead of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST))]
    pub measured_seconds: Option<f64>,
    /// Passes over the log that are measured, instead of packets. Only for workloads that are logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST))]
    pub measured_passes: Option<f64>,
    /// Continue measuring until the run is steady and half of the 95 % interval of the request rate, and of the content kept off the bus,
    /// is at most this much, per cent. What was measured before the run was steady is warm-up. At most `most_lengths` times the length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = MOST))]
    pub until_ci_percent: Option<f64>,
    /// Maximum length of the measurement with `until_ci_percent`, as a multiple of the given length.
    #[schemars(range(min = 1, max = MOST_LENGTHS))]
    pub most_lengths: u32,
    /// Interval of the time series, microseconds of simulated time.
    #[schemars(range(min = 1))]
    pub sample_us: u64,
    /// Simulated seconds after which the run ends even if it saw fewer packets.
    #[schemars(range(min = 1))]
    pub limit_s: u64,
    /// Begin with a warm file cache, as if the log, or each file, had been requested once. Without effect if the file cache has no limit.
    pub preload: bool,
    /// Charge work to processors and memory. Off: host and NIC take no time, only wires do.
    pub cost_models: bool,
    /// Check all invariants: after each of the first 16,384 events, then at intervals that grow with the run, because the time of a check
    /// grows with the number of connections (slow; for tests).
    pub check: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            warmup_packets: None,
            measured_packets: 600_000,
            warmup_responses: None,
            measured_responses: None,
            measured_seconds: None,
            measured_passes: None,
            until_ci_percent: None,
            most_lengths: 20,
            sample_us: 10_000,
            limit_s: 600,
            preload: true,
            cost_models: true,
            check: false,
        }
    }
}

/// Length of a part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Number of frames at the server's NICs, both directions.
    Packets(u64),
    /// Number of complete responses.
    Responses(u64),
    /// Simulated time, seconds.
    Seconds(f64),
    /// Multiple of the number of requests in the log, in responses.
    Passes(f64),
}

impl RunConfig {
    /// Returns the length of the part before the measurement.
    pub fn warmup(&self) -> Length {
        let responses = self.warmup_responses.map(Length::Responses);
        let packets = self.warmup_packets.map(Length::Packets);
        responses
            .or(packets)
            .unwrap_or(match self.measured_responses {
                Some(_) => Length::Responses(0),
                None => Length::Packets(WARMUP_PACKETS),
            })
    }

    /// Returns the length of the measured part.
    pub fn measured(&self) -> Length {
        let responses = self.measured_responses.map(Length::Responses);
        let seconds = self.measured_seconds.map(Length::Seconds);
        let passes = self.measured_passes.map(Length::Passes);
        let given = responses.or(seconds).or(passes);
        given.unwrap_or(Length::Packets(self.measured_packets))
    }

    /// Returns the seed of all random draws at this NIC. The first NIC has the seed of the run; the seeds of the others differ in bits that
    /// no other salt uses.
    pub(crate) fn nic_seed(&self, nic: u8) -> u64 {
        self.seed ^ u64::from(nic) << 48
    }

    /// Checks the constraints that types cannot express.
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        positive("run.measured_packets", self.measured_packets)?;
        if let Some(responses) = self.measured_responses {
            positive("run.measured_responses", responses)?;
        }
        let others = [
            ("run.measured_seconds", self.measured_seconds),
            ("run.measured_passes", self.measured_passes),
            ("run.until_ci_percent", self.until_ci_percent),
        ];
        for (path, value) in others {
            if value.is_some_and(|value| !(value > 0.0 && value <= MOST)) {
                let expected = format!("more than 0, at most {MOST}");
                return Err(Invalid::new(path, value.unwrap_or_default(), &expected));
            }
        }
        let lengths = [
            self.measured_responses.is_some(),
            self.measured_seconds.is_some(),
            self.measured_passes.is_some(),
        ];
        if lengths.into_iter().filter(|&given| given).count() > 1 {
            let expected = "one length: measured_responses, measured_seconds or measured_passes";
            return Err(Invalid::new("run", "several lengths", expected));
        }
        if self.warmup_packets.is_some() && self.warmup_responses.is_some() {
            let expected = "one warm-up: warmup_packets (--warmup) or warmup_responses";
            return Err(Invalid::new("run", "two warm-ups", expected));
        }
        one_to(MOST_LENGTHS, "run.most_lengths", self.most_lengths)?;
        positive("run.sample_us", self.sample_us)?;
        positive("run.limit_s", self.limit_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_warm_up_holds_for_every_kind_of_length() {
        let mut run = RunConfig::default();
        assert_eq!(run.warmup(), Length::Packets(WARMUP_PACKETS));
        run.measured_responses = Some(1_000);
        assert_eq!(run.warmup(), Length::Responses(0));
        run.warmup_packets = Some(5_000);
        assert_eq!(run.warmup(), Length::Packets(5_000));
        run.warmup_responses = Some(50);
        let two = run.validate().expect_err("there are two of them");
        assert!(two.to_string().contains("two warm-ups"), "{two}");
        run.warmup_packets = None;
        assert_eq!(run.warmup(), Length::Responses(50));
        run.validate().expect("there is one");
    }
}

//! What `--json` holds.

use super::constants::Constants;
use super::round::{Choice, Round};
use super::tolerance;
use crate::commands::reproduce::Row;
use baton_sim::config::{RunConfig, WorkloadConfig};
use serde::Serialize;
use std::collections::BTreeMap;

/// All of a calibration.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Name or path of the machine.
    pub profile: String,
    /// Commit of the program.
    pub commit: &'static str,
    /// What was replayed.
    pub workload: WorkloadConfig,
    /// Seed and length of each run.
    pub run: RunConfig,
    /// As the profile has them.
    pub in_profile: Outcome,
    /// The way from neutral constants to the derived ones, which are the last.
    pub rounds: Vec<RoundRecord>,
    /// Whether the last round brought nothing new.
    pub settled: bool,
}

/// Constants, and what they give.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// By key.
    constants: BTreeMap<&'static str, u32>,
    /// Published numbers, and the simulated ones with these constants.
    numbers: Vec<NumberRecord>,
}

/// One round.
#[derive(Debug, Serialize)]
pub struct RoundRecord {
    #[serde(flatten)]
    outcome: Outcome,
    /// What some of the constants were chosen from.
    choices: Vec<ChoiceRecord>,
}

/// One published number.
#[derive(Debug, Serialize)]
struct NumberRecord {
    #[serde(flatten)]
    row: Row,
    /// Whether the two are as near as is asked for.
    within_tolerance: bool,
}

/// What a constant was chosen from.
#[derive(Debug, Serialize)]
struct ChoiceRecord {
    key: &'static str,
    config: &'static str,
    candidates: Vec<CandidateRecord>,
}

/// One value of it.
#[derive(Debug, Serialize)]
struct CandidateRecord {
    value: u32,
    send_delay_median_us: f64,
    receive_delay_median_us: f64,
}

impl Outcome {
    /// Of these constants with these numbers.
    pub fn new(constants: &Constants, rows: &[Row]) -> Self {
        let number = |row: &Row| NumberRecord {
            row: row.clone(),
            within_tolerance: tolerance::met(row),
        };
        Self {
            constants: constants.to_map(),
            numbers: rows.iter().map(number).collect(),
        }
    }
}

impl From<&Round> for RoundRecord {
    fn from(round: &Round) -> Self {
        Self {
            outcome: Outcome::new(&round.constants, &round.rows),
            choices: round.choices.iter().map(ChoiceRecord::from).collect(),
        }
    }
}

impl From<&Choice> for ChoiceRecord {
    fn from(choice: &Choice) -> Self {
        let candidates = choice.candidates.iter().map(|candidate| CandidateRecord {
            value: candidate.value,
            send_delay_median_us: candidate.send_delay_us,
            receive_delay_median_us: candidate.receive_delay_us,
        });
        Self {
            key: choice.key,
            config: choice.published.config,
            candidates: candidates.collect(),
        }
    }
}

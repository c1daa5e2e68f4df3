//! Where the paper's tables are measured: in the simulator, or on this machine.

use super::settings::Settings;
use crate::failure::Failure;
use baton_bus::EntriesPerTransfer;
use baton_stats::Estimate;

/// A load with the settings at which it is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// Name in messages.
    pub name: String,
    pub file_bytes: u32,
    /// Number of simultaneous connections; when one ends, the next one begins.
    pub connections: u32,
    pub settings: Settings,
}

/// Results of a trial.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Time from the first byte of the request to the first byte of the reply, microseconds.
    pub response_us: Estimate,
    /// Time from the first to the last byte of the reply, microseconds.
    pub transfer_us: Estimate,
    /// DMA operations for each reply.
    pub crossings: Estimate,
    /// Replies in a second.
    pub rate: Estimate,
    /// Whether a run was not steady; unknown, and false, for measurements on this machine.
    pub is_doubtful: bool,
    /// Details of the first run.
    pub first: Closely,
}

/// Details of a single run.
#[derive(Clone, Debug)]
pub(super) struct Closely {
    /// Replies.
    pub responses: u64,
    /// Numbers of descriptors in the host's transfers.
    pub host_transfers: EntriesPerTransfer,
    /// Numbers of descriptors in the adapter's transfers.
    pub adapter_transfers: EntriesPerTransfer,
    /// Share of the time in which the processors worked, host first, per cent; `None` if it is not known.
    pub busy_percent: Option<[f64; 2]>,
}

impl Measured {
    /// Returns the crossings for each reply that move data, which batching of descriptors cannot save.
    pub fn data_crossings(&self) -> f64 {
        let Closely {
            responses,
            host_transfers,
            adapter_transfers,
            ..
        } = &self.first;
        let of_descriptors = host_transfers.transfers + adapter_transfers.transfers;
        self.crossings.mean - of_descriptors as f64 / (*responses).max(1) as f64
    }
}

/// The values that the search for a good setting tries on one side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// Levels in descriptors, from 2 on.
    pub levels: Vec<u32>,
    /// Timers, microseconds.
    pub timers_us: Vec<u32>,
}

/// A system on which the tables can be measured.
pub(super) trait Bench {
    /// Measures all trials.
    ///
    /// # Errors
    /// Fails if a run is impossible or fails, or if the user interrupts.
    fn measure_all(&self, trials: &[Trial]) -> Result<Vec<Measured>, Failure>;

    /// Returns the values that the search tries, for a load with this baseline.
    fn grid(&self, baseline: &Measured) -> Grid;

    /// Returns whether values are simulated or measured, in words.
    fn values_are(&self) -> &'static str;

    /// Returns the meaning of the spread of values over runs, in words.
    fn spread_is(&self) -> &'static str;

    /// Describes the measured system and the number of runs.
    fn note(&self) -> String;
}

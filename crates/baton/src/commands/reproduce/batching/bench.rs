//! Where the paper's tables are measured: in the simulator, or on this machine.

use super::settings::Settings;
use crate::failure::Failure;
use baton_bus::EntriesPerTransfer;
use baton_stats::Estimate;

/// A load with the settings that it is measured at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// What messages call it.
    pub name: String,
    pub file_bytes: u32,
    /// Connections at the same time, each followed by the next.
    pub connections: u32,
    pub settings: Settings,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// From the first byte of the request to the first of the reply, microseconds.
    pub response_us: Estimate,
    /// From there to the last byte, microseconds.
    pub transfer_us: Estimate,
    /// DMA operations for each reply.
    pub crossings: Estimate,
    /// Replies in a second.
    pub rate: Estimate,
    /// Whether a run was not steady; not known of measurements on this machine.
    pub is_doubtful: bool,
    /// The first run, more closely.
    pub first: Closely,
}

/// More of a single run.
#[derive(Clone, Debug)]
pub(super) struct Closely {
    /// Replies.
    pub responses: u64,
    /// Descriptors in each transfer of the host.
    pub host_transfers: EntriesPerTransfer,
    /// And of the adapter.
    pub adapter_transfers: EntriesPerTransfer,
    /// Share of the time in which the processors worked, host first, per cent; `None` where that is not known.
    pub busy_percent: Option<[f64; 2]>,
}

impl Measured {
    /// Crossings for each reply that move data, which no batching of descriptors saves.
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

/// What the search for a good setting tries on one side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// Descriptors, from 2 on.
    pub levels: Vec<u32>,
    /// Microseconds.
    pub timers_us: Vec<u32>,
}

/// Something that the tables can be measured on.
pub(super) trait Bench {
    /// Measures all of these.
    ///
    /// # Errors
    /// A run that cannot be, or fails; an interrupt.
    fn measure_all(&self, trials: &[Trial]) -> Result<Vec<Measured>, Failure>;

    /// What the search tries, for a load with this baseline.
    fn grid(&self, baseline: &Measured) -> Grid;

    /// What values are: simulated or measured.
    fn values_are(&self) -> &'static str;

    /// What the spread of values over runs is.
    fn spread_is(&self) -> &'static str;

    /// On what, and how often, was measured.
    fn note(&self) -> String;
}

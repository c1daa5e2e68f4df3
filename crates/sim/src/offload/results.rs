//! What a run measured. Equal experiments give equal bytes.

use super::config::Experiment;
use crate::results::{Distribution, Ended};
use baton_bus::{Accounting, EntriesPerTransfer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Results of one run: the measured part only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Format version of this structure.
    pub version: u32,
    /// The experiment, complete, seed included.
    pub experiment: Experiment,
    /// Commit of the program, as given by its caller.
    pub commit: String,
    /// Why the run ended.
    pub ended: Ended,
    /// Simulated length of the measured part, seconds.
    pub measured_s: f64,
    /// Complete replies.
    pub responses: u64,
    /// The same in a second.
    pub responses_per_s: f64,
    /// Bytes of files that clients received, Mb/s.
    pub content_mbps: f64,
    /// Mean time from the first byte of the request to the first byte of the reply, microseconds.
    pub response_time_us: f64,
    /// Mean time from there to the last byte, microseconds.
    pub transfer_time_us: f64,
    /// Response times.
    pub response_ms: Distribution,
    /// Transfer times.
    pub transfer_ms: Distribution,
    /// DMA operations for each reply.
    pub crossings_per_response: f64,
    /// Crossings and bytes.
    pub bus: Accounting,
    /// Descriptors in each of the host's transfers.
    pub host_transfers: EntriesPerTransfer,
    /// Descriptors in each of the adapter's transfers.
    pub adapter_transfers: EntriesPerTransfer,
    /// Share of the time in which the host's processor worked, per cent.
    pub host_busy_percent: f64,
    /// Share of the time in which the adapter's processor worked, per cent.
    pub adapter_busy_percent: f64,
    /// Segments that the adapter sent again.
    pub retransmissions: u64,
    /// Connections that were not opened, or failed, by reason.
    pub failed: BTreeMap<String, u64>,
}

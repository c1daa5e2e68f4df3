//! Counters of a live link.

/// Counters of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Number of transfers of descriptors by this side.
    pub transfers: u64,
    /// Number of doorbells that this side has rung.
    pub doorbells_rung: u64,
    /// Number of transfers without a doorbell, because the other side was awake.
    pub doorbells_saved: u64,
    /// Number of times that this side was about to sleep and found something to do.
    pub sleeps_saved: u64,
    /// Number of times that this side slept.
    pub sleeps: u64,
    /// Data written for the other side to read, bytes.
    pub bytes_out: u64,
    /// Data read that the other side has written, bytes.
    pub bytes_in: u64,
}

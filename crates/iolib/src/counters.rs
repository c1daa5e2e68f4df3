//! What a live link counts.

/// Counts of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Transfers of descriptors that this side has made.
    pub transfers: u64,
    /// Doorbells it has rung.
    pub doorbells_rung: u64,
    /// Transfers for which it did not have to: the other side was awake.
    pub doorbells_saved: u64,
    /// Times that it was about to sleep and found something to do.
    pub sleeps_saved: u64,
    /// Times that it slept.
    pub sleeps: u64,
    /// Data that it has put where the other side reads it, bytes.
    pub bytes_out: u64,
    /// Data that it has taken from where the other side put it, bytes.
    pub bytes_in: u64,
}

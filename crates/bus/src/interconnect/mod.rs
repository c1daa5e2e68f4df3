//! Models of the local interconnect between host memory, processor and devices.
//!
//! Devices and the processor [`submit`](Interconnect::submit) transfers. The model decides by its own arbitration when to execute each of
//! them, and returns it from [`poll_done`](Interconnect::poll_done) when it is complete. Each device has its own queue, in order. Models
//! are lazy: each call computes what happened on the bus since the last one, so the driver needs no event for each burst or packet, and
//! results do not depend on how often it calls.

mod config;
mod done;
mod error;
mod ideal;
mod job;
mod pci;
mod pcie;
mod preset;
mod size;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transfer;
mod usage;

pub use config::InterconnectConfig;
pub use error::InterconnectError;
pub use ideal::Ideal;
pub use pci::{PciConfig, PciXConfig, SharedBus};
pub use pcie::{CreditConfig, PciExpress, PciExpressConfig};
pub use transfer::{DeviceId, Done, Operation, Piece, Transfer};
pub use usage::{ChannelUsage, Traffic, Transfers, Usage, Way};

use std::fmt::Debug;

use baton_wire::Time;

/// A model of an interconnect.
///
/// After each `submit` and `handle_timeout`, the caller takes all transfers from `poll_done`, then calls `poll_timeout` again. `now` must
/// never decrease from call to call.
pub trait Interconnect: Debug + Send {
    /// Queues a transfer for its device.
    ///
    /// # Panics
    /// Panics if there is no such device.
    fn submit(&mut self, now: Time, transfer: Transfer);

    /// Queues the reads of a scatter list, one for each of `pieces`. Completion of the last one is reported, with `tag`.
    ///
    /// # Panics
    /// Panics if there is no such device.
    fn submit_reads(&mut self, now: Time, device: DeviceId, pieces: &[Piece], tag: u64) {
        for (place, piece) in (1..).zip(pieces) {
            let last = place == pieces.len();
            self.submit(now, piece.read_by(device, tag, last));
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next: no reported transfer completes earlier. `None` while none is in
    /// progress. This is a lower bound: with several active devices, `poll_done` may then return nothing, and this method a later time.
    fn poll_timeout(&self) -> Option<Time>;

    /// Computes what happened up to `now`.
    fn handle_timeout(&mut self, now: Time);

    /// Returns the next [reported](Transfer::reported) transfer that has completed by now, in the order of [`Done::at`].
    fn poll_done(&mut self) -> Option<Done>;

    /// Returns the usage since counting started, up to the last call of `submit` or `handle_timeout`.
    fn usage(&self, now: Time) -> Usage;

    /// Restarts the counts.
    fn restart_counts(&mut self, now: Time);
}

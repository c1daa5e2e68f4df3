//! Models of the local interconnect between host memory, processor and devices.
//!
//! Devices and the processor [`submit`](Interconnect::submit) transfers; the model decides by its own arbitration when each
//! is carried out, and gives it back from [`poll_done`](Interconnect::poll_done) when it is done. Each device has a queue of
//! its own, in order. Models are lazy: what happens on the bus between two calls is worked out in the second, so the driver
//! needs no event for each burst or packet, and results do not depend on how often it calls.

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
/// Calling order: after each `submit` and `handle_timeout`, take everything from `poll_done`, then ask `poll_timeout` again.
/// `now` never goes back from call to call.
pub trait Interconnect: Debug + Send {
    /// Queues a transfer for its device.
    ///
    /// # Panics
    /// When there is no such device.
    fn submit(&mut self, now: Time, transfer: Transfer);

    /// Queues the reads of a scatter list, one for each of `pieces`. That the last is done is reported, with `tag`.
    ///
    /// # Panics
    /// When there is no such device.
    fn submit_reads(&mut self, now: Time, device: DeviceId, pieces: &[Piece], tag: u64) {
        for (place, piece) in (1..).zip(pieces) {
            let last = place == pieces.len();
            self.submit(now, piece.read_by(device, tag, last));
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next: no transfer that is reported is done before. `None` while none is under way.
    /// A lower bound: with several devices at work there may be nothing in `poll_done` then, but a later time here.
    fn poll_timeout(&self) -> Option<Time>;

    /// Works out what happened up to `now`.
    fn handle_timeout(&mut self, now: Time);

    /// The next transfer that is done by now, in the order of [`Done::at`], of those that are [reported](Transfer::reported).
    fn poll_done(&mut self) -> Option<Done>;

    /// How it was used since counting began, up to the last call of `submit` or `handle_timeout`.
    fn usage(&self, now: Time) -> Usage;

    /// Begins to count anew.
    fn restart_counts(&mut self, now: Time);
}

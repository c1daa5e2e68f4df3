//! PCI and PCI-X: one bus that several devices and the processor share.

mod arbiter;
mod bus;
mod config;
mod master;
mod queued;
mod rules;
#[cfg(test)]
mod tests;
mod transaction;

pub use bus::SharedBus;
pub use config::{PciConfig, PciXConfig};

//! PCI and PCI-X: one bus that several devices and the processor share.

mod bus;
mod config;
mod master;
mod queued;
mod rules;
#[cfg(test)]
mod tests;

pub use bus::SharedBus;
pub use config::{PciConfig, PciXConfig};

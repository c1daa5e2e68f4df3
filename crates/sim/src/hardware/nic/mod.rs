//! The hardware of a NIC.

mod config;

pub use config::{
    Checksums, CoalescingRule, Descriptors, Dma, DriverRule, LinkRate, NicHardware, NicProcessing,
    PacketMemory, PauseRule,
};

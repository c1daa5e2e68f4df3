//! Models of the hardware: processors, caches, DRAM, disks and wires.
//!
//! All models are plain state machines without a clock of their own: the caller says what happens and when, and the model returns the cost.
//! Costs are whole cycles or whole picoseconds, so that a run is exactly repeatable.
//!
//! | model | result | not modelled |
//! |---|---|---|
//! | [`Cache`] | which lines are cached: sets, ways, true LRU, dirty lines | instruction fetch, address translation |
//! | [`Dram`] | latency of a line: open rows, one channel's bandwidth | refresh, command timing |
//! | [`MemoryHierarchy`] | stalls of an access to a range; invalidations by DMA | overlap of misses: the processor waits for each |
//! | [`Processor`], [`NicProcessor`] | duration of work, busy time | pipelines, branches |
//! | [`Disk`] | seek, rotation, transfer, order | zones, bad blocks, a cache beyond read-ahead |
//! | [`nic::Nic`] | when a frame has passed a NIC: rings, engines, DMA, packet memory, interrupts | bit errors, virtual functions |
//! | [`Wire`] | arrival of a frame | bit errors |

mod cache;
mod config_error;
mod disk;
mod dram;
mod memory;
pub mod nic;
mod pace;
mod processor;
mod tlb;
mod wire;

pub use cache::{Cache, CacheConfig, Outcome};
pub use config_error::ConfigError;
pub use disk::{Disk, DiskConfig, DiskQueue, DiskRequest};
pub use dram::{Dram, DramConfig, DramCounters};
pub use memory::{AccessCost, DmaPolicy, MemoryConfig, MemoryCounters, MemoryHierarchy};
pub use processor::{NicProcessor, NicProcessorConfig, Occupancy, Processor, ProcessorConfig};
pub use tlb::TlbConfig;
pub use wire::{BurstConfig, CHECK_SEQUENCE, Wire, WireConfig, WireCounters};
